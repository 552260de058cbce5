package snippets

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// Report is of docs/leases.md.
func Report(ctx context.Context,
	write func(context.Context, coordination.Token) error) (err error) {
	store, err := file.Open("/var/lib/shop/leases")
	if err != nil {
		return err
	}
	session, err := coordination.Open(store, coordination.Config{}) // one per process
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(context.Background())) }()
	return session.Lease("report").Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
		return write(ctx, g.Token())
	})
}

// Always is of docs/leases.md.
func Always(ctx context.Context, lease *coordination.Lease,
	hold func(context.Context, *coordination.Grant) error) {
	for ctx.Err() == nil {
		if err := lease.Do(ctx, hold); err != nil {
			slog.Warn("the lease has ended", "error", err)
		}
		select { // a pause, in case hold fails at once
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Once is of docs/leases.md.
func Once(ctx context.Context, lease *coordination.Lease,
	work func(*coordination.Grant) error) error {
	grant, err := lease.TryAcquire(ctx)
	switch {
	case err == nil: // held, until grant.Context() ends
	case errors.Is(err, coordination.ErrHeld):
		return nil // certainly not held: another session has it
	default:
		return err // unknown: act as not holding, try again later
	}
	return errors.Join(work(grant), grant.Release(ctx))
}

// indexing is the worker of docs/leases.md.
type indexing struct{ tenure coordination.Tenure }

// Receive implements actor.Actor.
func (w *indexing) Receive(c actor.Context) {
	if _, ok := c.Message().(*emptypb.Empty); ok && w.tenure.Check() == nil {
		c.Respond(&emptypb.Empty{})
	}
}

// Worker is of docs/leases.md.
func Worker(system *actor.ActorSystem, session *coordination.Session) *actor.PID {
	props := coordination.Gated(session.Lease("indexer"), 1000,
		func(t coordination.Tenure) actor.Actor {
			return &indexing{tenure: t}
		})
	return system.Root.Spawn(props)
}

var price = distributeddata.NewKey("price", fence.Register[int]{})

// Priced is of docs/leases.md.
func Priced(ctx context.Context, dd *distributeddata.Replicator, grant *coordination.Grant,
	cents int) error {
	_, err := price.Update(ctx, dd, func(w *crdt.Writer, r *fence.Register[int]) error {
		r.Set(w, grant.Token(), cents)
		return nil
	}, distributeddata.Majority)
	return err
}
