package simnet

import (
	"log/slog"

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
