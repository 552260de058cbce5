package sharding

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
)

// NewFromProps is what package grains calls, for any type of messages.
func NewFromProps[Msg proto.Message](system *actor.ActorSystem, session *coordination.Session,
	replicator *distributeddata.Replicator, cfg Config,
	blueprint func(Entity) (*actor.Props, func(actor.Context), error)) (*Region[Msg], error) {
	return newFromProps[Msg](system, session, replicator, cfg, blueprint)
}

// Activate is what package grains calls.
func (f Ref[Msg]) Activate(ctx context.Context) (*actor.PID, error) { return f.activate(ctx) }

// Agreed makes one attempt of a proxy to agree on its settings while no member has stated others
// and some have announced nothing yet.
func Agreed(ctx context.Context, data *distributeddata.Replicator, cfg Config, missing int,
	late bool) (done bool, err error) {
	l := &binding{cfg: cfg, data: data}
	l.ballot.Store(&ballot{missing, []string{cfg.settings()}})
	return l.agreed(ctx, late)
}
