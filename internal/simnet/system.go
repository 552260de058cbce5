package simnet

import (
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// NewSystem returns an actor system without logging. Its id is the given one instead of a random
// one, so that runs are reproducible. An empty id keeps the random one.
func NewSystem(id string) *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	if id != "" {
		s.ID = id
	}
	return s
}

// shrink puts all processes of a new system into one of the registry's 1,024 maps of 32 locked
// parts each. Iterating over all of them takes longer than an hour of virtual time, especially with
// the race detector.
func shrink(system *actor.ActorSystem) {
	all := system.ProcessRegistry.LocalPIDs
	kept := []string{"deadletter", "eventstream"} // the initial processes of a system
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
