package sharding

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/sharding/internal/core"
)

// leaseHolder acquires and releases leases outside the mailbox of the control actor, and reports
// the results by message. When the control actor has stopped, all grants, including later ones, are
// released.
type leaseHolder struct {
	l     *binding
	alive context.Context // ends when the control actor has stopped
	end   context.CancelFunc
	held  map[tenure]*coordination.Grant // grants that have not certainly been released
	turns chan struct{}                  // limits concurrent calls of the store
}

type tenure struct {
	shard int
	token uint64
}

// Messages of a leaseHolder. Each names the shard or the attempt that it is about, if any.
type (
	attempted struct {
		shard   int
		attempt uint64
		grant   *coordination.Grant
		err     error
		unhook  func() bool
	}
	over   tenure
	freed  core.Released
	looked core.Looked
)

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*attempted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*over) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*freed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*looked) IgnoreDeadLetterLogging() {}

// callsAtOnce bounds the concurrent calls of the store by one region.
const callsAtOnce = 64

// callTimeout bounds a lease call that has no bound of its own; releaseWithin bounds a release,
// which is retried until then.
const (
	callTimeout   = 3 * time.Second
	releaseWithin = 10 * time.Second
)

func newLeaseHolder(l *binding) *leaseHolder {
	alive, end := context.WithCancel(context.Background())
	return &leaseHolder{l: l, alive: alive, end: end, held: map[tenure]*coordination.Grant{},
		turns: make(chan struct{}, callsAtOnce)}
}

func (lh *leaseHolder) lease(shard int) *coordination.Lease {
	return lh.l.session.Lease(lh.l.leaseName(shard))
}

// call runs f outside the mailbox once one of callsAtOnce turns is free.
func (lh *leaseHolder) call(f func()) {
	go func() {
		select {
		case lh.turns <- struct{}{}:
			defer func() { <-lh.turns }()
		case <-lh.alive.Done():
		}
		f()
	}()
}

// acquire makes an attempt. It results in one *attempted.
func (lh *leaseHolder) acquire(e core.Acquire) {
	lease, system, control := lh.lease(e.Shard), lh.l.system, lh.l.control
	lh.call(func() {
		grant, err := try(lh.alive, lease, e.Blank)
		m := &attempted{shard: e.Shard, attempt: e.Attempt, grant: grant, err: err}
		if err == nil {
			// Registered before the message is sent: the control actor may already have stopped.
			m.unhook = context.AfterFunc(lh.alive, func() { _, _ = yield(grant) })
		}
		contain.Send(system, control, m)
	})
}

func try(ctx context.Context, lease *coordination.Lease,
	b core.Blank) (*coordination.Grant, error) {
	if b == (core.Blank{}) {
		return lease.TryAcquire(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	grant, err := leases.Held.AcquireBlank(ctx, lease, leases.Blank(b))
	if err != nil {
		return nil, err
	}
	return grant.(*coordination.Grant), nil
}

// granted records the grant of an attempt. The control actor gets one message if it is lost.
func (lh *leaseHolder) granted(m *attempted) uint64 {
	grant, system, control := m.grant, lh.l.system, lh.l.control
	key := tenure{m.shard, uint64(grant.Token())}
	m.unhook()
	lh.held[key] = grant
	context.AfterFunc(grant.Context(), func() {
		if !errors.Is(context.Cause(grant.Context()), coordination.ErrReleased) {
			contain.Send(system, control, (*over)(&key))
		}
	})
	return key.token
}

// grant returns the grant of a tenure, or nil if there is none.
func (lh *leaseHolder) grant(shard int, token uint64) *coordination.Grant {
	return lh.held[tenure{shard, token}]
}

// release releases a tenure. It results in one *freed.
func (lh *leaseHolder) release(e core.Release) {
	grant, system, control := lh.grant(e.Shard, e.Token), lh.l.system, lh.l.control
	lh.call(func() {
		m := &freed{Shard: e.Shard, Token: e.Token, Certain: true}
		if grant != nil {
			b, err := yield(grant)
			m.Certain, m.Blank = err == nil, core.Blank(b)
		}
		contain.Send(system, control, m)
	})
}

func yield(g *coordination.Grant) (leases.Blank, error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	return leases.Held.Yield(ctx, g)
}

// forget drops a grant that has been released, or is being released in the background.
func (lh *leaseHolder) forget(shard int, token uint64) {
	delete(lh.held, tenure{shard, token})
}

// lookTwice is how long a look waits for a coordinator that has just begun to announce itself.
const lookTwice = 2 * time.Second

// look checks whether another living session holds the lease of the coordinator. It results in one
// *looked. A record does not show whether its holder is alive. Unless the record is of a later
// tenure than the last one heard, look therefore waits until the holder has renewed it; or, for a
// holder that does not renew, until the record would have been taken over or marked as ended.
func (lh *leaseHolder) look(epoch uint64) {
	lease, session, system, control := lh.l.session.Lease(lh.l.coordinatorLease()), lh.l.session,
		lh.l.system, lh.l.control
	go func() {
		m := &looked{}
		defer contain.Send(system, control, m)
		h, err := holder(lh.alive, lease)
		if err != nil || h.Session == "" || h.Session == session.ID() {
			return
		}
		soon := time.After(lookTwice)
		if uint64(h.Token) <= epoch {
			stop, err := session.Observe(h.Session)
			if err != nil {
				return
			}
			defer stop()
			ctx, cancel := context.WithTimeout(lh.alive,
				lookTwice+h.Remaining+h.Remaining/50+time.Second)
			defer cancel()
			_, err = guarded(func() (h coordination.Holder, _ error) {
				return h, leases.Held.Renewed(ctx, lease)
			})
			if err != nil && ctx.Err() == nil {
				return // nothing was seen; at the deadline, that the record stays as it is
			}
		}
		select {
		case <-soon:
		case <-lh.alive.Done():
			return
		}
		again, err := holder(lh.alive, lease)
		m.Other = err == nil && again.Session != "" && again.Session != session.ID()
	}()
}

// holder reads the holder of a lease.
func holder(ctx context.Context, lease *coordination.Lease) (coordination.Holder, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return guarded(func() (coordination.Holder, error) { return lease.Holder(ctx) })
}

// guarded calls a method that reads the lease store, and recovers from a store that panics.
func guarded(read func() (coordination.Holder, error)) (h coordination.Holder, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("sharding: the lease store panicked")
		}
	}()
	return read()
}

// abandon withdraws and releases everything without waiting. Tenures in which entities still run
// are released when the entities have stopped; until then, the next incarnation of this member, in
// the same session, must not take them over.
func (lh *leaseHolder) abandon() {
	lh.end()
	for key, grant := range lh.held {
		if lh.l.shards[key.shard].last(key.token) {
			leases.Held.Abandon(grant)
		} else {
			go func() { _, _ = yield(grant) }()
		}
	}
	clear(lh.held)
}

// notHeld returns the event for an attempt that was not granted.
func notHeld(m *attempted) core.NotHeld {
	return core.NotHeld{Shard: m.shard, Attempt: m.attempt,
		Taken: errors.Is(m.err, coordination.ErrHeld)}
}

// tenures returns the tenures that have not certainly been released.
func (lh *leaseHolder) tenures() (out []tenure) {
	for k := range lh.held {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b tenure) int { return a.shard - b.shard })
	return out
}
