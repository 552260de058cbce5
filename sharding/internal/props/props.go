// Package props connects package sharding/grains with package sharding, whose entities it spawns
// with Proto.Actor's props. Programs need none of it, so it is not part of package sharding, which
// sets Hosted when it is initialized.
package props

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
)

// Hosted are functions of package sharding. Msg is proto.Message.
var Hosted struct {
	// NewRegion is like sharding.New for entities that are spawned with props: middleware, context
	// decorators and the supervision of children work as elsewhere, and Context.Actor returns the
	// actor that the props produce. blueprint is a func(sharding.Entity) (*actor.Props,
	// func(actor.Context), error): it returns the props of an entity, and a function that is called
	// with the context of the entity before its first message; that may be nil. Return the same
	// *actor.Props for many entities, because each shard keeps a copy of it. The mailbox and the
	// dispatcher of the props are replaced; a spawn function and a guardian are not used.
	NewRegion func(system *actor.ActorSystem, session, replicator, cfg, blueprint any) (region any,
		err error)
	// Activate starts the entity of a sharding.Ref unless it runs, and returns the PID of its
	// incarnation. It blocks until there is one or ctx ends.
	Activate func(ctx context.Context, ref any) (*actor.PID, error)
}
