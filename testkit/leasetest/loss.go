package leasetest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

var lossChecks = []check{
	{"D11_OncePerLoss", func(e *env) {
		n := e.node()
		for range 3 {
			g, err := n.acquire(time.Hour)
			e.must(err)
			a, b := losses(g), losses(g)
			n.set(fault{down: true})
			e.sleep(2 * ttl)
			n.set(fault{})
			e.sleep(2 * ttl)
			e.that(len(a.all()) == 1 && len(b.all()) == 1, "told %v, %v", a.all(), b.all())
		}
	}},
	{"D12_NotOnRelease", func(e *env) {
		g := e.node().hold()
		log := losses(g)
		e.must(g.Release(e.Context()))
		e.sleep(2 * ttl)
		losses(g).all()
		e.that(len(log.all()) == 0, "told %v", log.all())
	}},
	{"D13_LateRegistrationRunsAtOnce", func(e *env) {
		g := e.lost()
		log := losses(g)
		e.sleep(0)
		e.that(len(log.all()) == 1, "told %v", log.all())
	}},
	{"D14_HandlersAreIndependent", func(e *env) {
		n := e.node()
		g := n.hold()
		g.OnLost(func(*coordination.LostError) { panic("in a handler") })
		g.OnLost(func(*coordination.LostError) { time.Sleep(time.Hour) })
		withdrawn := &losslog{}
		stop := g.OnLost(withdrawn.add)
		e.that(stop(), "withdrawn too late")
		log := losses(g)
		n.set(fault{down: true})
		e.sleep(ttl)
		e.that(len(log.all()) == 1 && len(withdrawn.all()) == 0, "told %v, withdrawn %v", log.all(),
			withdrawn.all())
		e.sleep(2 * time.Hour)
	}},
	{"D15_HandlerMayCallBack", func(e *env) {
		n := e.node()
		g := n.hold()
		var again atomic.Pointer[coordination.Grant]
		g.OnLost(func(*coordination.LostError) {
			_ = g.Release(context.Background())
			next, err := n.Lease(name).Acquire(e.Context())
			e.that(err == nil, "got %v", err)
			again.Store(next)
		})
		n.set(fault{down: true})
		e.sleep(ttl)
		n.set(fault{})
		e.sleep(2 * ttl)
		e.that(again.Load() != nil && again.Load().Check() == nil, "not acquired again")
	}},
	{"D16_OldLossIsNotTheNewTenures", func(e *env) {
		n := e.node()
		g := n.hold()
		e.must(g.Release(e.Context()))
		next := n.hold()
		log := losses(next)
		e.must(g.Release(e.Context()))
		e.sleep(2 * ttl)
		e.must(next.Check())
		e.that(len(log.all()) == 0 && errors.Is(g.Check(), coordination.ErrReleased), "told %v, %v",
			log.all(), g.Check())
	}},
	{"A12_CloseEndsEverything", func(e *env) {
		n, other := e.node(), e.node()
		g := n.hold()
		obeyed(g)
		log := losses(g)
		waiting := make(chan error)
		go func() {
			_, err := other.Lease(name).Acquire(e.Context())
			waiting <- err
		}()
		e.sleep(time.Second)
		e.must(n.Close(e.Context()))
		e.must(n.Close(e.Context()))
		e.sleep(0)
		e.that(len(log.all()) == 1 && log.all()[0].Why == coordination.Closed, "told %v", log.all())
		_, err := n.try()
		e.that(errors.Is(err, coordination.ErrClosed), "got %v", err)
		e.must(g.Release(e.Context()))
		e.must(<-waiting) // released, not expired
		e.that(since(e.start) < ttl, "after %v", since(e.start))
	}},
	{"A12_CloseReleasesNothingThatIsInUse", func(e *env) {
		n, other := e.node(), e.node()
		g := n.hold()
		obeyed(e.holdMany(n, 2)...)
		t := time.Now()
		err := n.Close(context.Background())
		e.that(errors.Is(err, coordination.ErrUnknown) &&
			strings.Contains(err.Error(), strconv.Quote(name)) &&
			!strings.Contains(err.Error(), "shard-"), "got %v", err)
		e.that(since(t) <= drain+time.Second, "closed after %v", since(t))
		e.holdMany(other, 2)
		_, err = other.acquire(time.Hour)
		e.must(err)
		e.that(g.Remaining() == 0, "taken while work may run for %v", g.Remaining())
		e.that(since(t) <= stale+retry, "taken after %v", since(t))
	}},
	{"A12_CloseAnswersWaiters", func(e *env) {
		e.node().hold()
		n := e.node()
		closed := make(chan error, 1)
		time.AfterFunc(time.Minute, func() { closed <- n.Close(context.Background()) })
		_, err := n.acquire(time.Hour)
		e.that(errors.Is(err, coordination.ErrClosed), "got %v", err)
		e.must(<-closed)
	}},
	{"A12_CloseEndsThoughARecordIsUnreadable", func(e *env) {
		e.needs(e.options.Damage != nil, "Damage")
		n := e.node()
		g, fine := n.hold(), e.holdMany(n, 2)
		obeyed(g)
		obeyed(fine...)
		rec, _, err := e.store.Load(e.Context(), fine[0].Lease().Name())
		e.must(err)
		e.must(e.options.Damage(e.store, name))
		t := time.Now()
		err = n.Close(context.Background())
		e.that(errors.Is(err, coordination.ErrUnknown) &&
			strings.Contains(err.Error(), strconv.Quote(name)), "got %v", err)
		e.that(err != nil && !strings.Contains(err.Error(), "shard-"),
			"names what was released: %v", err)
		e.that(since(t) <= drain+6*op, "closed after %v", since(t))
		e.that(g.Check() != nil && fine[0].Check() != nil, "a grant outlives its session")
		if e.shared {
			left, _, err := e.store.Load(e.Context(), leasestore.SessionRecords+rec.Nonce)
			e.that(left.Nonce == "" && err == nil, "the session still counts as a holder: %v %v",
				left, err)
		}
		e.holdMany(e.node(), 2)
	}},
	{"A12_CloseEndsThoughTheStoreIsDown", func(e *env) {
		n := e.node()
		n.hold()
		n.set(fault{down: true})
		t := time.Now()
		err := n.Close(context.Background())
		e.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		e.that(since(t) <= drain+6*op, "closed after %v", since(t))
	}},
	{"A12_CloseDoesNotWaitForWorkThatHasEnded", func(e *env) {
		n := e.node()
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- n.Lease(name).Do(e.Context(),
				func(ctx context.Context, _ *coordination.Grant) error {
					close(begun)
					<-ctx.Done()
					return nil
				})
		}()
		<-begun
		t := time.Now()
		e.must(n.Close(context.Background()))
		e.that(since(t) < time.Second, "closed after %v", since(t))
		e.must(<-ended)
		e.node().hold()
	}},
	{"A12_CloseWithStoreDownIsUnknown", func(e *env) {
		n := e.node()
		g := n.hold()
		n.set(fault{cut: true})
		ctx, cancel := context.WithTimeout(e.Context(), time.Second)
		defer cancel()
		err := n.Close(ctx)
		e.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		e.that(g.Check() != nil, "grant outlives its session")
	}},
}

// lost returns a grant that has been lost.
func (e *env) lost() *coordination.Grant {
	n := e.node()
	g := n.hold()
	n.set(fault{down: true})
	e.sleep(2 * ttl)
	n.set(fault{})
	return g
}
