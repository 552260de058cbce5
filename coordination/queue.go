package coordination

import (
	"context"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// enqueue takes or keeps the place in the queue of the lease. A place that was written a moment ago
// is only looked at: a release wakes all waiters, and all their writes would conflict. Open has
// checked that the store keeps documents.
func (d *driver) enqueue(e core.Enqueue) {
	now := int64(d.lease.s.now().Mono)
	last := d.queued.Load()
	keep := last != 0 && now-last < int64(e.Place.TTL/6)
	d.call(func(ctx context.Context) core.Event {
		ahead, wrote, err := queue.Enqueue(ctx, d.lease.s.store.(leasestore.Documents),
			d.lease.name, e.Place, keep)
		if wrote && err == nil {
			d.queued.Store(now)
		}
		return core.Enqueued{Op: e.Op, Ahead: ahead, Err: err}
	}, func(err error) core.Event { return core.Enqueued{Op: e.Op, Err: err} })
}

// leave gives up the session's own place and removes the places of dead sessions.
func (d *driver) leave(e core.Leave) {
	d.call(func(ctx context.Context) core.Event {
		return core.Left{Op: e.Op, Err: queue.Leave(ctx, d.lease.s.store.(leasestore.Documents),
			d.lease.name, e.Places)}
	}, func(err error) core.Event { return core.Left{Op: e.Op, Err: err} })
}
