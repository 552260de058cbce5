package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/testkit/history"
)

// historyChecks check whole histories.
var historyChecks = []check{
	{"H1_H4_LeaseIsLinearizableUnderFaults", func(e *env) {
		for seed := uint64(0); seed < 5 && !e.Failed(); seed++ {
			history.Check(e, history.Lease(),
				contest(e, fmt.Sprint("h", seed), rand.New(rand.NewPCG(seed, 1))))
		}
	}},
	{"H3_F4_PausedHolderCannotHurtAFencedTarget", func(e *env) {
		history.Check(e, history.Lease(), pausedHolder(e, &fenced{}))
	}},
}

// scribe records the operations of a test's nodes on one lease.
type scribe struct {
	history.Recorder[history.LeaseOp, history.LeaseResult]
	e        *env
	lease    string
	target   *fenced
	expiries sync.WaitGroup
	stop     chan struct{} // stops the goroutines that wait for an expiry
}

func newScribe(e *env, lease string, target *fenced) *scribe {
	return &scribe{e: e, lease: lease, target: target, stop: make(chan struct{})}
}

// operations ends the recording and returns the operations.
func (r *scribe) operations() []history.Operation[history.LeaseOp, history.LeaseResult] {
	close(r.stop)
	r.expiries.Wait()
	return r.Operations()
}

// contest lets nodes contend for a lease under random faults, and write under it.
func contest(e *env, lease string,
	rnd *rand.Rand) []history.Operation[history.LeaseOp, history.LeaseResult] {
	r := newScribe(e, lease, &fenced{})
	seeds := make([]*rand.Rand, 4)
	for i := range seeds {
		seeds[i] = rand.New(rand.NewPCG(rnd.Uint64(), 2))
	}
	var wg sync.WaitGroup
	for i, rnd := range seeds {
		n := e.node()
		wg.Go(func() {
			for range 15 {
				r.turn(i, n, rnd)
			}
			n.set(fault{})
		})
	}
	wg.Wait()
	return r.operations()
}

// turn is one attempt of a client, with its consequences.
func (r *scribe) turn(client int, n *node, rnd *rand.Rand) {
	pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(int64(most)))) }
	n.set(fault{delay: time.Duration(rnd.IntN(300)) * time.Millisecond})
	switch rnd.IntN(12) {
	case 0:
		n.set(fault{loseWrites: true}, 1+rnd.IntN(3))
	case 1:
		n.set(fault{cut: true}, 1+rnd.IntN(12))
	case 2:
		n.set(fault{delay: time.Duration(rnd.IntN(4000)) * time.Millisecond}, 1+rnd.IntN(5))
	case 3:
		n.set(fault{refuse: true}, 1+rnd.IntN(2))
	}
	pause(4 * time.Second)
	g := r.acquire(client, n)
	if g == nil {
		r.read(client)
		return
	}
	pause(ttl / 10)
	r.write(client, g, fmt.Sprint(client, rnd.IntN(100)))
	if rnd.IntN(5) == 0 { // a stalled client writes again, whatever the state of its tenure
		n.set(fault{cut: true})
		pause(5 * ttl)
		n.set(fault{})
		r.write(client, g, fmt.Sprint(client, rnd.IntN(100)))
	}
	if rnd.IntN(3) == 0 {
		n.set(fault{down: true}, 1+rnd.IntN(20))
	}
	r.release(client, g)
}

func (r *scribe) acquire(client int, n *node) *coordination.Grant {
	op := r.Begin(client, history.LeaseOp{Lease: r.lease, Kind: history.Acquire,
		Holder: fmt.Sprint("node", client)})
	g, err := n.Lease(r.lease).TryAcquire(r.e.Context())
	switch {
	case err == nil:
		op.End(history.LeaseResult{Granted: true, Token: uint64(g.Token())})
		r.expiries.Go(func() { r.expiry(g) })
		return g
	case errors.Is(err, coordination.ErrHeld):
		op.End(history.LeaseResult{})
	default:
		op.Unknown()
		r.expiries.Go(func() { r.settle(op.Settled) })
	}
	return nil
}

// settle waits until an operation whose answer the session did not get has been undone, or has
// expired.
func (r *scribe) settle(then func()) {
	select {
	case <-time.After(2 * ttl):
		then()
	case <-r.stop:
	}
}

// expiry records when the tenure stops being valid for its own holder.
func (r *scribe) expiry(g *coordination.Grant) {
	for left := g.Remaining(); left > 0; left = g.Remaining() {
		select {
		case <-time.After(left):
		case <-r.stop:
			return
		}
	}
	token := uint64(g.Token())
	r.Begin(100+int(token), history.LeaseOp{Lease: r.lease, Kind: history.Expire,
		Token: token}).End(history.LeaseResult{})
}

func (r *scribe) write(client int, g *coordination.Grant, value string) {
	op := r.Begin(client, history.LeaseOp{Lease: r.lease, Kind: history.GuardedWrite,
		Token: uint64(g.Token()), Value: value})
	op.End(history.LeaseResult{Granted: r.target.put(g.Token(), value) == nil})
}

func (r *scribe) read(client int) {
	op := r.Begin(client, history.LeaseOp{Lease: r.lease, Kind: history.GuardedRead})
	op.End(history.LeaseResult{Value: r.target.get()})
}

func (r *scribe) release(client int, g *coordination.Grant) {
	op := r.Begin(client, history.LeaseOp{Lease: r.lease, Kind: history.Release,
		Token: uint64(g.Token())})
	ctx, cancel := context.WithTimeout(r.e.Context(), 4*time.Second)
	defer cancel()
	switch err := g.Release(ctx); {
	case err == nil:
		op.End(history.LeaseResult{Granted: true})
	case errors.Is(err, coordination.ErrStillHeld):
		op.End(history.LeaseResult{})
	default:
		op.Unknown()
		r.expiries.Go(func() { r.settle(op.Settled) })
	}
}

// pausedHolder is a history that no clock can prevent: a holder checks its lease, is stopped for
// longer than the lease lasts, and then writes as it had decided before.
func pausedHolder(e *env, target *fenced) []history.Operation[history.LeaseOp,
	history.LeaseResult] {
	r := newScribe(e, name, target)
	a, b := e.node(), e.node()
	g := r.acquire(0, a)
	if g == nil || g.Check() != nil {
		e.Fatalf("no grant on a free lease")
	}
	a.set(fault{cut: true}) // stopped
	e.sleep(2 * ttl)
	next := r.acquire(1, b)
	for range 20 {
		if next != nil {
			break
		}
		e.sleep(stale / 4)
		next = r.acquire(1, b)
	}
	if next == nil {
		e.Fatalf("a dead holder keeps the lease")
	}
	r.write(1, next, "new")
	r.write(0, g, "old") // continues where it stopped
	r.read(1)
	a.set(fault{})
	return r.operations()
}
