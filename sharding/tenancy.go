package sharding

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding/internal/core"
)

// tenancy acquires and releases beside the mailbox of the control actor, which is told by message; when that is gone,
// whatever was granted, or is yet, is released.
type tenancy struct {
	l     *life
	alive context.Context // ends when the control actor has stopped
	end   context.CancelFunc
	held  map[tenure]*coordination.Grant // that have not certainly been released
	turns chan struct{}                  // calls of the store under way
}

type tenure struct {
	shard int
	token uint64
}

// Messages of a tenancy. Each names what it speaks of.
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

// IgnoreDeadLetterLogging keeps what meets a stopped actor out of the log.
func (*attempted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps what meets a stopped actor out of the log.
func (*over) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps what meets a stopped actor out of the log.
func (*freed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps what meets a stopped actor out of the log.
func (*looked) IgnoreDeadLetterLogging() {}

// callsAtOnce bounds the calls of the store that a region makes at one time.
const callsAtOnce = 64

// callTimeout bounds a call of a lease that does not bound itself, releaseWithin one that is repeated until then.
const (
	callTimeout   = 3 * time.Second
	releaseWithin = 10 * time.Second
)

func newTenancy(l *life) *tenancy {
	alive, end := context.WithCancel(context.Background())
	return &tenancy{l: l, alive: alive, end: end, held: map[tenure]*coordination.Grant{}, turns: make(chan struct{}, callsAtOnce)}
}

func (t *tenancy) lease(shard int) *coordination.Lease {
	return t.l.session.Lease(t.l.leaseName(shard))
}

// call runs f beside the mailbox, when it is its turn.
func (t *tenancy) call(f func()) {
	go func() {
		select {
		case t.turns <- struct{}{}:
			defer func() { <-t.turns }()
		case <-t.alive.Done():
		}
		f()
	}()
}

// acquire makes an attempt. It ends with one *attempted.
func (t *tenancy) acquire(e core.Acquire) {
	lease, root, control := t.lease(e.Shard), t.l.system.Root, t.l.control
	t.call(func() {
		grant, err := try(t.alive, lease, e.Blank)
		m := &attempted{shard: e.Shard, attempt: e.Attempt, grant: grant, err: err}
		if err == nil {
			// In place before anybody can miss it: the control actor may be gone by now.
			m.unhook = context.AfterFunc(t.alive, func() { _, _ = yield(grant) })
		}
		root.Send(control, m)
	})
}

func try(ctx context.Context, lease *coordination.Lease, b core.Blank) (*coordination.Grant, error) {
	if b == (core.Blank{}) {
		return lease.TryAcquire(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lease.AcquireBlank(ctx, coordination.Blank{Version: coordination.Version(b.Version), Token: coordination.Token(b.Token)})
}

// granted takes the grant of an attempt. The control actor is told, once, when it is lost.
func (t *tenancy) granted(m *attempted) uint64 {
	grant, root, control := m.grant, t.l.system.Root, t.l.control
	key := tenure{m.shard, uint64(grant.Token())}
	m.unhook()
	t.held[key] = grant
	context.AfterFunc(grant.Context(), func() {
		if !errors.Is(context.Cause(grant.Context()), coordination.ErrReleased) {
			root.Send(control, (*over)(&key))
		}
	})
	return key.token
}

// grant returns the grant of a tenure, nil if there is none.
func (t *tenancy) grant(shard int, token uint64) *coordination.Grant {
	return t.held[tenure{shard, token}]
}

// release gives a tenure up. It ends with one *freed.
func (t *tenancy) release(e core.Release) {
	grant, root, control := t.grant(e.Shard, e.Token), t.l.system.Root, t.l.control
	t.call(func() {
		m := &freed{Shard: e.Shard, Token: e.Token, Certain: true}
		if grant != nil {
			b, err := yield(grant)
			m.Certain, m.Blank = err == nil, core.Blank{Version: string(b.Version), Token: uint64(b.Token)}
		}
		root.Send(control, m)
	})
}

func yield(g *coordination.Grant) (coordination.Blank, error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	return g.Yield(ctx)
}

// forget drops a grant that has been released, or is being in the background.
func (t *tenancy) forget(shard int, token uint64) {
	delete(t.held, tenure{shard, token})
}

// lookTwice is how long a look waits for a coordinator that has just begun to speak.
const lookTwice = 2 * time.Second

// look finds out whether another living session holds the lease of the coordinator. It ends with one *looked. A record
// does not show whether its holder lives: unless it is of a later tenure than the last that was heard, the look waits
// until the record would have been taken over or written down as ended.
func (t *tenancy) look(epoch uint64) {
	lease, session, root, control := t.l.session.Lease(t.l.coordinatorLease()), t.l.session, t.l.system.Root, t.l.control
	go func() {
		m := &looked{}
		defer root.Send(control, m)
		h, err := holder(t.alive, lease)
		if err != nil || h.Session == "" || h.Session == session.ID() {
			return
		}
		wait := lookTwice
		if uint64(h.Token) <= epoch {
			stop, err := session.Observe(h.Session)
			if err != nil {
				return
			}
			defer stop()
			wait += h.Remaining + h.Remaining/50 + time.Second
		}
		select {
		case <-time.After(wait):
		case <-t.alive.Done():
			return
		}
		again, err := holder(t.alive, lease)
		m.Other = err == nil && again.Session != "" && again.Session != session.ID()
	}()
}

// holder survives a store that panics.
func holder(ctx context.Context, lease *coordination.Lease) (h coordination.Holder, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("sharding: the lease store panicked")
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return lease.Holder(ctx)
}

// abandon withdraws and releases everything, without waiting: what entities still run under, when they have ended.
func (t *tenancy) abandon() {
	t.end()
	for key, grant := range t.held {
		if !t.l.places[key.shard].last(key.token) {
			go func() { _, _ = yield(grant) }()
		}
	}
	clear(t.held)
}

// notHeld is the answer to an attempt that was not granted.
func notHeld(m *attempted) core.NotHeld {
	return core.NotHeld{Shard: m.shard, Attempt: m.attempt, Taken: errors.Is(m.err, coordination.ErrHeld)}
}

// tenures returns those that have not certainly been given up.
func (t *tenancy) tenures() (out []tenure) {
	for k := range t.held {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b tenure) int { return a.shard - b.shard })
	return out
}
