package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

var acquireChecks = []check{
	{"A1_B2_HeldByALivingOther", func(e *env) {
		g := e.node().hold()
		_, err := e.node().try()
		held, ok := errors.AsType[*coordination.HeldError](err)
		e.that(ok && errors.Is(err, coordination.ErrHeld) &&
			!errors.Is(err, coordination.ErrUnknown), "got %v", err)
		e.that(ok && held.Holder.Owner == "node0" && held.Holder.Token == g.Token(), "holder %+v",
			held)
		e.that(ok && held.Holder.Remaining > 0 && held.Holder.Remaining <= stale, "holder %+v",
			held)
	}},
	{"A3_SameNameSameLease", func(e *env) {
		n := e.node()
		x, again, y := n.Lease("x"), n.Lease("x"), n.Lease("y")
		e.that(x == again && x != y, "leases are mixed up")
	}},
	{"A9_NameRequired", func(e *env) {
		_, err := e.node().Lease("").TryAcquire(e.Context())
		e.that(errors.Is(err, coordination.ErrInvalid), "got %v", err)
	}},
	{"A13_ManyLeasesOnOneNode", checkMany},
	{"B1_FreeLease", func(e *env) { e.node().hold() }},
	{"B3_StoreDownIsUnknown", func(e *env) {
		n := e.node()
		for _, f := range []fault{{down: true}, {panics: true}} {
			n.set(f)
			_, err := n.try()
			e.that(errors.Is(err, coordination.ErrUnknown) && !errors.Is(err, coordination.ErrHeld),
				"%+v: %v", f, err)
		}
	}},
	{"B4_SlowStoreTimesOut", func(e *env) {
		n := e.node()
		n.set(fault{cut: true})
		t := time.Now()
		_, err := n.try()
		e.that(errors.Is(err, coordination.ErrUnknown) && errors.Is(err, context.DeadlineExceeded),
			"got %v", err)
		e.that(since(t) <= op*11/10, "after %v", since(t))
	}},
	{"B5_TwoContendersOneWinner", func(e *env) {
		for range 50 {
			checkContention(e, 2)
		}
	}},
	{"B6_ManyContendersOneWinner", func(e *env) {
		checkContention(e, 30)
		checkContention(e, 200)
	}},
	{"B7_F2_ReentrantKeepsTheToken", func(e *env) {
		n := e.node()
		g := n.hold()
		calls, left := n.count(), g.Remaining()
		again := n.hold()
		e.that(again == g && n.count() == calls && g.Remaining() == left,
			"another grant, or it was extended")
	}},
	{"B8_ConcurrentAcquiresOnOneLease", func(e *env) {
		n := e.node()
		var grants sync.Map
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				g, err := n.Lease(name).Acquire(e.Context())
				e.that(err == nil && e.nth(g.Token(), 1), "got %v %v", g, err)
				grants.Store(g, true)
			})
		}
		wg.Wait()
		tenures := 0
		grants.Range(func(any, any) bool { tenures++; return true })
		e.that(tenures == 1, "%d tenures", tenures)
	}},
	{"B9_LostAnswerIsNeverTakenByMe", func(e *env) {
		n := e.node()
		n.set(fault{loseWrites: true}, 2) // load, claim
		_, err := n.try()
		e.that(err == nil || errors.Is(err, coordination.ErrUnknown), "got %v", err)
		n.hold()
	}},
	{"B9_LostAnswerIsAdopted", func(e *env) {
		n := e.node()
		n.set(fault{loseWrites: true}, 2)
		g, err := n.acquire(time.Minute)
		e.must(err)
		e.that(e.nth(g.Token(), 1), "token %v", g.Token())
		e.that(since(e.start) >= op, "not after the timeout")
		e.that(g.Remaining() < ttl-op, "validity counted from the answer: %v", g.Remaining())
	}},
	{"B12_EveryAttemptIsFresh", func(e *env) {
		a, b := e.node(), e.node()
		g := a.hold()
		_, err := b.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		b.set(fault{down: true})
		_, err = b.try()
		e.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		b.set(fault{})
		_, err = b.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		e.must(g.Release(e.Context()))
		g = b.hold()
		e.must(g.Release(e.Context()))
		b.hold()
	}},
	{"B13_GivingUpLeavesNoHolder", checkGivingUp},
	{"B14_OwnerNameIsNoIdentity", func(e *env) {
		cfg := config()
		cfg.Owner = "same"
		e.nodeWith(cfg).hold()
		_, err := e.nodeWith(cfg).try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
	}},
	{"B15_RestartWaitsForThePredecessor", func(e *env) {
		a := e.node()
		a.hold()
		a.crash()
		g, err := e.node().acquire(time.Minute)
		e.must(err)
		e.that(e.nth(g.Token(), 2) && since(e.start) >= ttl, "token %v after %v", g.Token(),
			since(e.start))
	}},
	{"B15_ASuccessorInheritsAtOnce", func(e *env) {
		own := config()
		own.Owner, own.Inherit, own.LockDelay = "10.0.0.1:7000", true, time.Hour
		a := e.nodeWith(own)
		before := a.hold()
		a.crash()
		named, other := own, own // neither the name alone nor another name inherits
		named.Inherit, other.Owner = false, "10.0.0.2:7000"
		for _, cfg := range []coordination.Config{named, other} {
			_, err := e.nodeWith(cfg).try()
			e.that(errors.Is(err, coordination.ErrHeld), "%v inherits: %v", cfg.Owner, err)
		}
		b := e.nodeWith(own)
		t := time.Now()
		// the crashed session believes that it holds it
		g, err := b.Lease(name).TryAcquire(e.Context())
		e.must(err)
		e.that(since(t) < op && g.Token() > before.Token(), "token %v after %v and %v", g.Token(),
			before.Token(), since(t))
		e.sleep(2 * ttl)
		e.must(g.Check())
		e.must(g.Release(e.Context()))
		_, err = e.node().acquire(time.Minute)
		e.must(err)
	}},
	{"B15_APredecessorLearnsOfTheTakeover", func(e *env) {
		own := config()
		own.Owner, own.Inherit = "10.0.0.1:7000", true
		old, err := e.nodeWith(own).Lease(name).TryAcquire(e.Context())
		e.must(err)
		told := losses(old)
		g, err := e.nodeWith(own).Lease(name).TryAcquire(e.Context())
		e.must(err)
		e.that(g.Token() > old.Token(), "token %v after %v", g.Token(), old.Token())
		e.sleep(ttl)
		e.that(old.Check() != nil && len(told.all()) == 1, "told %v, check %v", told.all(),
			old.Check())
		e.must(g.Check())
		_ = old.Release(e.Context()) // must not release the lease of the successor
		e.sleep(ttl)
		e.must(g.Check())
		_, err = e.node().try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
	}},
	{"B17_E1_ReleaseIsNoticedAtOnce", func(e *env) {
		g := e.node().hold()
		// the waiter may hold the lease before Release has its answer
		released := make(chan error, 1)
		time.AfterFunc(time.Minute, func() { released <- g.Release(e.Context()) })
		_, err := e.node().acquire(time.Hour)
		e.must(err)
		e.must(<-released)
		waited, bound := since(e.start)-time.Minute, retry
		if _, ok := e.store.(leasestore.Watcher); ok {
			bound = time.Second
		}
		e.that(waited <= bound, "noticed after %v", waited)
	}},
	{"B18_LockDelayAfterACrashOnly", func(e *env) {
		cfg := config()
		cfg.LockDelay = time.Minute
		a := e.nodeWith(cfg)
		g := a.hold()
		t := time.Now()
		e.must(g.Release(e.Context()))
		next, err := e.node().acquire(time.Hour)
		e.must(err)
		e.that(since(t) < ttl, "delayed by %v after a release", since(t))
		e.must(next.Release(e.Context()))
		old, err := a.acquire(time.Hour)
		e.must(err)
		e.that(old.Remaining() <= ttl, "valid for %v", old.Remaining())
		a.crash()
		t = time.Now()
		_, err = e.node().acquire(time.Hour)
		e.must(err)
		e.that(since(t) >= ttl+time.Minute && since(t) <= 2*time.Minute, "taken %v after a crash",
			since(t))
	}},
	{"C11_AcquireWaitsOutAnOutage", func(e *env) {
		n := e.node()
		n.set(fault{down: true})
		time.AfterFunc(10*time.Minute, func() { n.set(fault{}) })
		_, err := n.acquire(time.Hour)
		e.must(err)
		e.that(since(e.start) <= 10*time.Minute+retry, "after %v", since(e.start))
	}},
}

// checkContention lets n nodes contend for a free lease, and releases it again.
func checkContention(e *env, n int) {
	var won []*coordination.Grant
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		node := e.node()
		wg.Go(func() {
			g, err := node.Lease(name).TryAcquire(e.Context())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, g)
			} else if !errors.Is(err, coordination.ErrHeld) {
				e.Errorf("loser got %v", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		e.Fatalf("%d winners of %d", len(won), n)
	}
	e.must(won[0].Release(e.Context()))
	for _, node := range e.nodes {
		node.crash()
	}
}

// checkGivingUp ends the caller's context at every stage of an acquire. The other node must get the
// lease soon, without waiting for a TTL.
func checkGivingUp(e *env) {
	for _, f := range []fault{{}, {delay: time.Second}, {loseWrites: true}, {loseAnswer: true}} {
		for _, patience := range []time.Duration{0, 10 * time.Millisecond, 1500 * time.Millisecond,
			2500 * time.Millisecond} {
			n := e.node()
			n.set(f, 4)
			ctx, cancel := context.WithTimeout(e.Context(), patience)
			g, err := n.Lease(name).Acquire(ctx)
			cancel()
			if err == nil {
				e.must(g.Release(e.Context()))
			} else {
				e.that(errors.Is(err, context.DeadlineExceeded), "got %v", err)
			}
			t := time.Now()
			g, err = e.node().acquire(time.Minute)
			e.must(err)
			e.that(since(t) < ttl/2, "%+v, %v: zombie holder for %v", f, patience, since(t))
			e.must(g.Release(e.Context()))
		}
	}
}

func checkMany(e *env) {
	n := e.node()
	var wg sync.WaitGroup
	const many = 200
	for _, l := range manyNames(many) {
		wg.Go(func() {
			_, err := n.Lease(l).TryAcquire(e.Context())
			e.that(err == nil, "%s: %v", l, err)
		})
	}
	wg.Wait()
	calls := n.count()
	e.sleep(2 * ttl)
	for _, l := range manyNames(many) {
		_, err := n.Lease(l).TryAcquire(e.Context())
		e.that(err == nil, "%s: %v", l, err)
	}
	e.that(n.count()-calls <= many*7, "%d calls", n.count()-calls)
}

func manyNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("shard-", i)
	}
	return all
}
