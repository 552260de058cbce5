package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// renewed waits for the next renewal.
func (e *env) renewed(g *coordination.Grant) {
	e.sleep(op)
	for g.Remaining() < ttl*95/100 {
		e.sleep(100 * time.Millisecond)
		e.must(g.Check())
	}
}

// learns returns how long a holder may take to learn that another session has written its record:
// until the next renewal or, if the session is renewed, until it reads the record.
func (e *env) learns() time.Duration {
	if e.shared {
		return 3*ttl*11/10 + time.Second
	}
	return ttl / 2
}

// polls returns how much later a change is noticed if the store is not watched.
func (e *env) polls() time.Duration {
	if _, ok := e.store.(leasestore.Watcher); ok {
		return 0
	}
	return retry
}

func contextCause(g *coordination.Grant) error { return context.Cause(g.Context()) }

var renewChecks = []check{
	{"D1_HeldForTenTTL", func(e *env) {
		g := e.node().hold()
		for range 100 {
			e.sleep(ttl / 10)
			e.must(g.Check())
		}
	}},
	{"D2_FailedRenewalsAreRepeated", func(e *env) {
		n := e.node()
		g := n.hold()
		for _, f := range []fault{{down: true}, {cut: true}, {loseAnswer: true}, {panics: true},
			{refuse: true}} {
			e.sleep(ttl)
			n.set(f, 2)
			e.sleep(ttl)
			e.that(g.Check() == nil, "%+v: %v", f, g.Check())
		}
	}},
	{"D3_AllRenewalsFail", func(e *env) {
		n := e.node()
		g := n.hold()
		log := losses(g)
		n.set(fault{down: true})
		e.sleep(ttl)
		e.that(len(log.all()) == 1 && log.all()[0].Why == coordination.Expired &&
			errors.Is(log.all()[0], errDown), "told %v", log.all())
	}},
	{"D4_LandedButLostRenewal", func(e *env) {
		n := e.node()
		g := n.hold()
		token := g.Token()
		for range 5 {
			n.set(fault{loseWrites: true}, 1)
			e.sleep(ttl)
			e.must(g.Check())
		}
		e.that(n.hold() == g && g.Token() == token, "token %v after %v", g.Token(), token)
	}},
	{"D5_TakenOver", func(e *env) {
		g := e.node().hold()
		log := losses(g)
		_, ver, err := e.store.Load(e.Context(), name)
		e.must(err)
		e.write(ver, sample(7))
		e.sleep(e.learns())
		e.that(len(log.all()) == 1 && log.all()[0].Why == coordination.TakenOver, "told %v",
			log.all())
		held, ok := errors.AsType[*coordination.HeldError](g.Check())
		e.that(ok && e.nth(held.Holder.Token, 7), "got %v", g.Check())
		e.that(g.Remaining() == 0, "remaining %v", g.Remaining())
	}},
	{"D7_Partition", func(e *env) {
		a, b := e.node(), e.node()
		g := a.hold()
		log := losses(g)
		a.set(fault{cut: true})
		_, err := b.acquire(time.Hour)
		e.must(err)
		e.that(len(log.all()) == 1, "told %v", log.all())
		a.set(fault{})
		e.sleep(ttl)
		_, err = a.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
	}},
	{"D8_Crash", func(e *env) {
		a, b := e.node(), e.node()
		a.hold()
		e.sleep(ttl)
		_, err := b.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		a.crash()
		t := time.Now()
		_, err = b.acquire(time.Hour)
		e.must(err)
		e.that(since(t) <= stale+retry, "after %v", since(t))
	}},
	{"D10_OutageShorterThanTTL", func(e *env) {
		n := e.node()
		g := n.hold()
		e.sleep(ttl)
		// The outage begins up to 1.1·TTL/3 after a renewal, plus the timeout of a call that hangs
		n.set(fault{cut: true})
		e.sleep(8 * time.Second)
		n.set(fault{})
		e.sleep(ttl)
		e.must(g.Check())
	}},
	{"D10_SlowStoreCostsNoLease", func(e *env) {
		for i, part := range []time.Duration{20, 10, 5, 4} {
			call := ttl / part
			cfg := coordination.Config{TTL: ttl}
			a, b := e.nodeWith(cfg), e.nodeWith(cfg)
			for _, n := range []*node{a, b} {
				n.set(fault{slow: call})
			}
			l := fmt.Sprint("slow-", i)
			begun := time.Now()
			g, err := a.granted(a.Lease(l).TryAcquire(e.Context()))
			e.must(err)
			e.that(since(begun) <= 3*call+time.Second, "granted after %v, each call takes %v",
				since(begun), call)
			next := make(chan waited, 1)
			go func() {
				g, err := b.Lease(l).Acquire(e.Context())
				next <- waited{g, err, time.Now()}
			}()
			for t := time.Now(); since(t) < 10*ttl; e.sleep(time.Second) {
				if err := g.Check(); err != nil {
					e.Fatalf("lost after %v, each call takes %v: %v", since(t), call, err)
				}
			}
			crashed := time.Now()
			a.crash()
			w := <-next
			_, err = b.granted(w.grant, w.err)
			e.must(err)
			e.that(w.at.Sub(crashed) <= stale+4*call+e.polls(), "taken after %v, each call takes %v",
				w.at.Sub(crashed), call)
			b.crash()
		}
	}},
	{"K_NearExpiryOncePerEpisode", func(e *env) {
		n := e.node()
		g := n.hold()
		var told, undone atomic.Int32
		g.OnNearExpiry(func(left time.Duration) {
			e.that(left > 0 && left <= ttl/3, "remaining %v", left)
			told.Add(1)
		})
		g.OnNearExpiry(func(time.Duration) { undone.Add(1) })()
		for range 2 {
			e.renewed(g)
			n.set(fault{down: true})
			e.sleep(22 * time.Second)
			n.set(fault{})
			e.sleep(ttl)
		}
		e.must(g.Check())
		e.that(told.Load() == 2 && undone.Load() == 0, "told %d, withdrawn %d", told.Load(),
			undone.Load())
	}},
	{"G7_HoldersTTLRules", func(e *env) {
		short := e.nodeWith(coordination.Config{TTL: 10 * time.Second})
		a := e.node()
		a.hold()
		a.crash()
		_, err := short.acquire(time.Hour)
		e.must(err)
		e.that(since(e.start) >= ttl, "taken after %v", since(e.start))
	}},
}
