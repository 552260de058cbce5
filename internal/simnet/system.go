package simnet

import (
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// NewSystem returns an actor system that logs nothing, with this id instead of a random one, so that
// runs are alike. An empty id keeps the random one.
func NewSystem(id string) *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	if id != "" {
		s.ID = id
	}
	return s
}

// shrink puts all processes of a new system into one of the 1,024 maps, of 32 locked parts each, that a
// registry has: going through all of them takes longer, above all with the race detector, than an hour of
// virtual time.
func shrink(system *actor.ActorSystem) {
	all := system.ProcessRegistry.LocalPIDs
	kept := []string{"deadletter", "eventstream"} // what a system has from the start
	var processes []actor.Process
	for _, id := range kept {
		p, _ := system.ProcessRegistry.GetLocal(id)
		processes = append(processes, p)
	}
	all.LocalPIDs = slices.Clone(all.LocalPIDs[:1])
	for i, id := range kept {
		all.LocalPIDs[0].Set(id, processes[i])
	}
}
