package sharding_test

import (
	"log/slog"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/simnet"
)

// newSystem creates the actor system of a member; with CONCORD_LOG=1 its log is shown.
func newSystem(id string) *actor.ActorSystem {
	if os.Getenv("CONCORD_LOG") == "" {
		return simnet.NewSystem(id)
	}
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.Default().With("at", id)
	}))
	s.ID = id
	return s
}
