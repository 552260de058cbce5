package coordination

import (
	"context"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// enqueue asks the store for a place. Open has checked that the store is a Queuer.
func (d *driver) enqueue(e core.Enqueue) {
	d.call(func(ctx context.Context) core.Event {
		ahead, err := d.lease.s.store.(leasestore.Queuer).Enqueue(ctx, d.lease.name,
			leasestore.Waiter(e.Place))
		known := make([]core.Place, len(ahead))
		for i, p := range ahead {
			known[i] = core.Place(p)
		}
		return core.Enqueued{Op: e.Op, Ahead: known, Err: err}
	}, func(err error) core.Event { return core.Enqueued{Op: e.Op, Err: err} })
}

// leave gives up the session's own place and removes the places of dead sessions.
func (d *driver) leave(e core.Leave) {
	gone := make([]leasestore.Waiter, len(e.Places))
	for i, p := range e.Places {
		gone[i] = leasestore.Waiter(p)
	}
	d.call(func(ctx context.Context) core.Event {
		return core.Left{Op: e.Op, Err: d.lease.s.store.(leasestore.Queuer).Leave(ctx, d.lease.name,
			gone)}
	}, func(err error) core.Event { return core.Left{Op: e.Op, Err: err} })
}
