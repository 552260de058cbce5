package leasetest

import (
	"context"
	"errors"
	"time"

	"github.com/concord-go/concord/coordination"
)

var releaseChecks = []check{
	{"E1_OthersNeedNotWait", func(e *env) {
		g := e.node().hold()
		e.must(g.Release(e.Context()))
		e.node().hold()
		e.that(since(e.start) < time.Second, "after %v", since(e.start))
	}},
	{"E2_AnyNumberOfTimes", func(e *env) {
		g := e.node().hold()
		for range 5 {
			e.must(g.Release(e.Context()))
		}
		e.must(e.lost().Release(e.Context()))
	}},
	{"E3_E4_ExHolderCannotHurtTheNext", func(e *env) {
		a := e.node()
		g := a.hold()
		a.set(fault{cut: true})
		next, err := e.node().acquire(time.Hour)
		e.must(err)
		a.set(fault{})
		e.must(g.Release(e.Context()))
		e.sleep(2 * ttl)
		e.must(next.Check())
	}},
	{"E5_StoreDownIsUnknownAndRetried", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{down: true})
		ctx, cancel := context.WithTimeout(e.Context(), time.Second)
		defer cancel()
		err := g.Release(ctx)
		e.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		e.that(errors.Is(g.Check(), coordination.ErrReleased), "check %v", g.Check())
		n.set(fault{})
		e.sleep(2 * op)
		e.node().hold()
	}},
	{"E5_StoreDownUntilExpiry", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{down: true})
		err := g.Release(e.Context())
		e.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		e.that(since(e.start) >= ttl && since(e.start) < 2*ttl, "after %v", since(e.start))
	}},
	{"E6_RefusedIsStillHeld", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{refuse: true})
		err := g.Release(e.Context())
		e.that(errors.Is(err, coordination.ErrStillHeld) &&
			!errors.Is(err, coordination.ErrUnknown), "got %v", err)
		n.set(fault{})
		e.sleep(2 * op)
		e.node().hold()
	}},
	{"E7_LostAnswerSettles", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{loseAnswer: true}, 1)
		e.must(g.Release(e.Context()))
		e.node().hold()
	}},
	{"E8_DuringAcquire", func(e *env) {
		n := e.node()
		n.set(fault{delay: time.Second})
		ctx, cancel := context.WithCancel(e.Context())
		done := make(chan error)
		go func() {
			_, err := n.Lease(name).TryAcquire(ctx)
			done <- err
		}()
		e.sleep(1500 * time.Millisecond) // the claim is in flight
		cancel()
		e.that(<-done != nil, "acquired after it was withdrawn")
		e.sleep(2 * op)
		e.node().hold()
	}},
	{"E9_WithARenewalInFlight", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{delay: 2 * time.Second})
		e.sleep(11500 * time.Millisecond)
		e.must(g.Release(e.Context()))
		calls := n.countTo(name)
		e.sleep(2 * ttl)
		e.that(n.countTo(name) == calls, "%d calls after release", n.countTo(name)-calls)
		e.node().hold()
	}},
	{"E10_OnlyAfterConfirmation", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{delay: 2 * time.Second})
		t := time.Now()
		e.must(g.Release(e.Context()))
		e.that(since(t) >= 2*time.Second, "after %v", since(t))
	}},
	{"E11_OneReleaseForAll", func(e *env) {
		n := e.node()
		g, again := n.hold(), n.hold()
		e.must(again.Release(e.Context()))
		e.that(g.Check() != nil, "still held")
		e.node().hold()
	}},
	{"Do_ReleasesAlsoOnPanic", func(e *env) {
		n := e.node()
		func() {
			defer func() { _ = recover() }()
			_ = n.Lease(name).Do(e.Context(), func(context.Context, *coordination.Grant) error {
				panic("work")
			})
		}()
		boom := errors.New("boom")
		err := e.node().Lease(name).Do(e.Context(),
			func(ctx context.Context, g *coordination.Grant) error {
				t, ok := coordination.FromContext(ctx)
				e.that(ok && t.Token() == g.Token() && e.nth(g.Token(), 2), "tenure %v", t)
				return boom
			})
		e.that(errors.Is(err, boom), "got %v", err)
		e.node().hold()
	}},
	{"Do_EndsWithTheGrant", func(e *env) {
		n := e.node()
		err := n.Lease(name).Do(e.Context(),
			func(ctx context.Context, g *coordination.Grant) error {
				n.set(fault{cut: true})
				<-ctx.Done()
				return context.Cause(ctx)
			})
		e.that(errors.Is(err, coordination.ErrLost), "got %v", err)
	}},
}
