package snippets

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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

// Target is of docs/leases.md.
func Target(ledger http.Handler) http.Handler {
	guard := &fence.Guard{} // one for the life of the process
	return guard.Handler(func(*http.Request) string { return "ledger" }, ledger)
}

// Source is of docs/leases.md. Its context is that of the work of Do.
func Source(ctx context.Context, url string, entry io.Reader) error {
	client := &http.Client{Transport: fence.Transport{}} // takes the token from the context
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, entry)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusPreconditionFailed {
		return fence.ErrStale // another tenure has written: stop
	}
	return nil
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
