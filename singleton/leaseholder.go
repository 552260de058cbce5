package singleton

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/leases"
)

// leaseHolder acquires and releases outside the manager's mailbox. It belongs to the manager, and
// reports to it by messages. When the manager is gone, every present or later grant is released.
type leaseHolder struct {
	lease    *coordination.Lease
	tries    time.Duration   // bounds an attempt
	lifetime context.Context // ends when the manager and its instance have stopped
	end      context.CancelFunc
	stop     context.CancelFunc // cancels the pending attempt
	held     map[uint64]*holding
	blind    func() // stops observing the lease

	failure error              // of the last attempt
	last    coordination.Token // of the last tenure here
}

// holding is a grant that may not have been released yet.
type holding struct {
	grant  *coordination.Grant
	unhook func() bool
}

// Messages of a leaseHolder. Each names its attempt, grant, probe or tenure.
type (
	attemptEnded struct {
		attempt   uint64
		grant     *coordination.Grant
		err       error
		cancelled bool
		unhook    func() bool
	}
	tenureOver struct{ grant *coordination.Grant }
	probeEnded struct {
		probe          uint64
		reached, taken bool
		token          uint64
	}
	releaseEnded struct {
		token uint64
		err   error
	}
)

// IgnoreDeadLetterLogging keeps messages to a stopped manager out of the log.
func (*attemptEnded) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped manager out of the log.
func (*tenureOver) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped manager out of the log.
func (*releaseEnded) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped manager out of the log.
func (*probeEnded) IgnoreDeadLetterLogging() {}

// taken reports whether the store has answered and another session holds the lease.
func (a *attemptEnded) taken() bool { return errors.Is(a.err, coordination.ErrHeld) }

// silent reports whether the tenure is over because the store did not answer.
func (o *tenureOver) silent() bool {
	lost, ok := errors.AsType[*coordination.LostError](context.Cause(o.grant.Context()))
	return ok && lost.Why == coordination.Expired
}

// final reports whether no later attempt can succeed.
func (a *attemptEnded) final() bool {
	return errors.Is(a.err, coordination.ErrClosed) || errors.Is(a.err, coordination.ErrInvalid)
}

func newLeaseHolder(l *coordination.Lease, tries time.Duration) leaseHolder {
	lifetime, end := context.WithCancel(context.Background())
	return leaseHolder{lease: l, tries: tries, lifetime: lifetime, end: end, stop: func() {},
		blind: func() {}, held: map[uint64]*holding{}}
}

// acquire starts an attempt. It ends with one *attemptEnded.
func (lh *leaseHolder) acquire(ctx actor.Context, attempt uint64) {
	system, self, lease, lifetime := ctx.ActorSystem(), ctx.Self(), lh.lease, lh.lifetime
	wait, stop := context.WithTimeout(lifetime, lh.tries)
	lh.stop = stop
	go func() {
		defer stop()
		grant, err := lease.Acquire(wait)
		m := &attemptEnded{attempt: attempt, grant: grant, err: err,
			cancelled: errors.Is(wait.Err(), context.Canceled)}
		if err == nil {
			// Registered before the manager learns of the grant, because the manager may be gone by
			// now.
			m.unhook = context.AfterFunc(lifetime, func() { _ = release(grant, releaseAlone) })
		}
		contain.Send(system, self, m)
	}()
}

// probe reads the lease. It ends with one *probeEnded.
func (lh *leaseHolder) probe(ctx actor.Context, number uint64) {
	system, self := ctx.ActorSystem(), ctx.Self()
	lease, lifetime, last := lh.lease, lh.lifetime, lh.last
	go func() {
		p := &probeEnded{probe: number}
		defer func() {
			_ = recover() // the store panicked: it was not reached
			contain.Send(system, self, p)
		}()
		h, err := lease.Holder(lifetime)
		p.taken = err == nil && h.Owner != "" && h.Token != last // ours holds nothing any more
		p.reached, p.token = err == nil, uint64(h.Token)
	}()
}

// follow starts or stops observing the lease.
func (lh *leaseHolder) follow(on bool) {
	lh.blind()
	if lh.blind = func() {}; on {
		lh.blind = leases.Held.Observe(lh.lease)
	}
}

// releaseAlone bounds the wait for a release that nobody waits for. The release itself continues in
// the background.
const releaseAlone = 10 * time.Second

func release(g *coordination.Grant, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return g.Release(ctx)
}

// cancel ends the pending attempt soon.
func (lh *leaseHolder) cancel() { lh.stop() }

// granted stores the grant of an attempt. The manager gets one *tenureOver when the grant is over.
func (lh *leaseHolder) granted(ctx actor.Context, m *attemptEnded) {
	system, self, grant := ctx.ActorSystem(), ctx.Self(), m.grant
	lh.last = grant.Token()
	lh.held[uint64(grant.Token())] = &holding{grant, m.unhook}
	context.AfterFunc(grant.Context(), func() { contain.Send(system, self, &tenureOver{grant}) })
}

// grant returns the grant with this token, nil if there is none.
func (lh *leaseHolder) grant(token uint64) *coordination.Grant {
	if h := lh.held[token]; h != nil {
		return h.grant
	}
	return nil
}

// release gives a tenure up, and waits for the release for at most within. If the next host is
// being sent a state, it first waits, for a bounded time, until that host has the state. It ends
// with one *releaseEnded.
func (lh *leaseHolder) release(ctx actor.Context, token uint64, within time.Duration,
	given <-chan struct{}) {
	system, self, grant := ctx.ActorSystem(), ctx.Self(), lh.grant(token)
	go func() {
		if given != nil {
			timeout := time.NewTimer(min(stateWait, within/2))
			defer timeout.Stop()
			select {
			case <-given:
			case <-timeout.C:
			}
		}
		var err error
		if grant != nil {
			err = release(grant, within)
		}
		contain.Send(system, self, &releaseEnded{token, err})
	}()
}

// forget drops a grant that has been released, or whose release continues in the background.
func (lh *leaseHolder) forget(token uint64) {
	if h := lh.held[token]; h != nil {
		h.unhook()
		delete(lh.held, token)
	}
}

// leave ends the tenures whose instance has not stopped: the next incarnation of this member, in
// the same session, must not take them over.
func (lh *leaseHolder) leave() {
	for _, h := range lh.held {
		leases.Held.Abandon(h.grant)
	}
}

// abandon cancels the attempt and releases every grant, without waiting.
func (lh *leaseHolder) abandon() {
	lh.blind()
	lh.end()
}
