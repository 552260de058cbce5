package snippets

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/singleton"
)

// numbers is the singleton of docs/singleton.md.
type numbers struct {
	tenure coordination.Tenure
	last   uint64
	store  func(ctx context.Context, token coordination.Token, last uint64) error
}

// Receive implements actor.Actor.
func (n *numbers) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *actor.Started: // load what earlier instances have stored
	case *wrapperspb.StringValue:
		if n.tenure.Check() != nil { // the lease is lost: no effect, no answer
			return
		}
		if err := n.store(n.tenure.Context(), n.tenure.Token(), n.last+1); err != nil {
			panic(err) // the instance is made again, and loads
		}
		n.last++
		c.Respond(wrapperspb.UInt64(n.last))
	}
}

// Numbered is of docs/singleton.md.
func Numbered(n *node.Node,
	store func(context.Context, coordination.Token, uint64) error,
) (*singleton.Singleton, error) {
	clerk, err := singleton.New(n.System, n.Session,
		singleton.Config{Name: "numbers", MinMembers: 3},
		func(t coordination.Tenure) actor.Actor { return &numbers{tenure: t, store: store} })
	return clerk, err
}

// Next is of docs/singleton.md.
func Next(ctx context.Context, clerk *singleton.Singleton) (uint64, error) {
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	number, err := singleton.As[*wrapperspb.UInt64Value](clerk.Ask(within,
		wrapperspb.String("next")))
	switch {
	case err == nil:
		return number.GetValue(), nil
	case errors.Is(err, singleton.ErrUnknown):
		return 0, err // it may have been handled: ask again only if that does no harm
	default:
		return 0, err // certainly not handled: ask again
	}
}

// HandOver is of docs/singleton.md.
func (n *numbers) HandOver() proto.Message { return wrapperspb.UInt64(n.last) }

// TakeOver is of docs/singleton.md.
func (n *numbers) TakeOver(_ coordination.Token, state proto.Message) {
	if s, ok := state.(*wrapperspb.UInt64Value); ok {
		n.last = s.GetValue()
	}
}

var _ singleton.Warm = (*numbers)(nil)

// Clients is of docs/singleton.md.
func Clients(system *actor.ActorSystem) (*singleton.Singleton, error) {
	return singleton.NewProxy(system, singleton.Config{Name: "numbers"})
}
