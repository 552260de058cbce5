package leasetest

import (
	"errors"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// sharedChecks check leases that one session record keeps alive, and other features of a
// SessionKeeper.
var sharedChecks = []check{
	{"A13_OneRenewalForAThousandLeases", func(e *env) {
		const many, intervals = 1000, 9
		n := e.node()
		grants := e.holdMany(n, many)
		writes := n.countWrites()
		e.sleep(intervals * ttl / 3)
		for _, g := range grants {
			e.must(g.Check())
		}
		wrote := n.countWrites() - writes
		e.that(wrote >= 1 && wrote <= 2*intervals, "%d writes in %d intervals", wrote, intervals)
		e.Logf("%d leases, %d writes in %d intervals", many, wrote, intervals)
	}},
	{"A9_SessionRecordsAreNoLeases", func(e *env) {
		_, err := e.node().Lease(leasestore.SessionRecords + "x").TryAcquire(e.Context())
		e.that(errors.Is(err, coordination.ErrInvalid), "got %v", err)
	}},
	{"B3_ASessionThatCannotBeRenewedIsTold", func(e *env) {
		holder, n := e.node(), e.node()
		n.set(fault{refuse: true})
		e.sleep(ttl)
		t := time.Now()
		_, err := n.try()
		e.that(errors.Is(err, coordination.ErrUnknown) && errors.Is(err, leasestore.ErrRefused),
			"got %v", err)
		e.that(since(t) <= 2*op, "after %v", since(t))
		holder.hold()
		_, err = n.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		n.set(fault{})
		_, err = n.Lease("other").Acquire(e.Context())
		e.must(err)
	}},
	{"D3_ALostSessionLosesAllItsLeases", func(e *env) {
		n := e.node()
		var logs []*losslog
		for _, g := range e.holdMany(n, 20) {
			logs = append(logs, losses(g))
		}
		n.set(fault{down: true})
		e.sleep(ttl)
		for _, log := range logs {
			told := log.all()
			e.that(len(told) == 1 && told[0].Why == coordination.Expired &&
				errors.Is(told[0], errDown), "told %v", told)
		}
		n.set(fault{})
		_, err := n.acquire(time.Hour)
		e.must(err)
	}},
	{"K8_SessionThatBeginsAgainIsAlone", func(e *env) {
		a, b := e.node(), e.node()
		b.set(fault{ahead: true})
		stop, err := b.Observe(a.ID()) // b reads the session record of a after each change
		e.must(err)
		defer stop()
		for range 3 {
			g := a.hold()
			log := losses(g)
			a.set(fault{down: true})
			e.sleep(2 * ttl)
			e.that(len(log.all()) == 1, "told %v", log.all())
			a.set(fault{delay: time.Second}) // b reads between the writes of a
			g, err := a.acquire(time.Hour)
			e.must(err)
			for t := time.Now(); since(t) < 2*ttl; e.sleep(time.Second) {
				_, err := b.try()
				e.that(errors.Is(err, coordination.ErrHeld) && g.Check() == nil, "got %v, %v", err,
					g.Check())
			}
			a.set(fault{})
			e.must(g.Release(e.Context()))
		}
	}},
	{"D8_AllLeasesOfADeadSessionCanBeTaken", func(e *env) {
		a, b := e.node(), e.node()
		e.holdMany(a, 3)
		a.crash()
		t := time.Now()
		_, err := b.Lease("shard-0").Acquire(e.Context())
		e.must(err)
		e.that(since(t) >= ttl-op && since(t) <= stale+retry, "taken after %v", since(t))
		e.sleep(time.Second) // the record says that the session is closed: contenders need not wait
		for _, l := range manyNames(3)[1:] {
			g, err := e.node().Lease(l).TryAcquire(e.Context())
			e.that(err == nil && e.nth(g.Token(), 2), "%s: %v %v", l, g, err)
		}
	}},
	{"D6_G6_DeletedSessionRecord", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		a, b := e.node(), e.node()
		g := a.hold()
		log := losses(g)
		rec, _, err := e.store.Load(e.Context(), name)
		e.must(err)
		e.must(e.options.Delete(e.store, leasestore.SessionRecords+rec.Nonce))
		next, err := b.acquire(time.Hour)
		e.must(err)
		told := log.all()
		e.that(len(told) == 1 && told[0].Why == coordination.RecordDeleted, "told %v", told)
		e.that(next.Token() > g.Token(), "token %v after %v", next.Token(), g.Token())

		rec, _, err = e.store.Load(e.Context(), name)
		e.must(err)
		b.set(fault{cut: true}) // it does not notice the deletion
		e.must(e.options.Delete(e.store, leasestore.SessionRecords+rec.Nonce))
		t := time.Now()
		_, err = a.acquire(time.Hour)
		e.must(err)
		e.that(since(t) >= ttl, "absence was taken for freedom after %v", since(t))
	}},
	{"D6_G6_DeletedRecordOfALivingSession", func(e *env) {
		e.needs(e.options.Delete != nil, "Delete")
		a, b := e.node(), e.node()
		_, err := a.Lease("other").TryAcquire(e.Context())
		e.must(err)
		log := losses(a.hold())
		_, err = b.try()
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		e.must(e.options.Delete(e.store, name))
		_, err = b.acquire(6 * ttl) // the session continues, and does not keep the lost lease
		e.must(err)
		told := log.all()
		e.that(len(told) == 1 && told[0].Why == coordination.RecordDeleted, "told %v", told)
	}},
	{"C02_BothWaysOfRenewalExclude", func(e *env) {
		through, own := e.nodeSharing(config(), true), e.nodeSharing(config(), false)
		for i, pair := range [][2]*node{{through, own}, {own, through}, {through, own}} {
			g, err := pair[0].acquire(time.Hour)
			e.must(err)
			e.sleep(3 * ttl)
			_, err = pair[1].try()
			e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
			if i == 2 {
				pair[0].crash()
				continue
			}
			e.must(g.Release(e.Context()))
		}
		t := time.Now()
		_, err := own.acquire(time.Hour)
		e.must(err)
		e.that(since(t) >= ttl-op && since(t) <= stale+retry, "taken after %v", since(t))
	}},
	{"A12_CloseLeavesNoSessionRecord", func(e *env) {
		n := e.node()
		obeyed(e.holdMany(n, 3)...)
		rec, _, err := e.store.Load(e.Context(), "shard-0")
		e.must(err)
		e.must(n.Close(e.Context()))
		left, ver, err := e.store.Load(e.Context(), leasestore.SessionRecords+rec.Nonce)
		e.that(left.Nonce == "" && err == nil, "left %v %v", left, err)
		if e.removes() {
			e.that(ver == "", "not removed")
		}
		e.holdMany(e.node(), 3)
	}},
	{"A12_WhoTakesOverRemovesTheSessionRecord", func(e *env) {
		e.needsAbility(e.removes(), "Remover")
		a, b := e.node(), e.node()
		e.holdMany(a, 3)
		rec, _, err := e.store.Load(e.Context(), "shard-0")
		e.must(err)
		a.crash()
		_, err = b.Lease("shard-0").Acquire(e.Context())
		e.must(err)
		e.sleep(4 * ttl)
		_, ver, err := e.store.Load(e.Context(), leasestore.SessionRecords+rec.Nonce)
		e.that(ver == "" && err == nil, "not removed: %q %v", ver, err)
		t := time.Now()
		g, err := e.node().Lease("shard-1").Acquire(e.Context())
		e.must(err)
		e.that(since(t) <= stale+retry && e.nth(g.Token(), 2), "%v taken after %v", g, since(t))
	}},
	{"D20_ForeverNeedsAnOperator", func(e *env) {
		cfg := config()
		cfg.Forever = true
		a, b := e.nodeWith(cfg), e.node()
		g := a.hold()
		calls := a.countTo(name)
		e.sleep(100 * ttl)
		e.must(g.Check())
		e.that(a.countTo(name)-calls <= 40, "%d calls", a.countTo(name)-calls)
		a.crash()
		_, err := b.acquire(100 * ttl)
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		err = b.Lease(name).ForceRelease(e.Context(), g.Token()+1)
		e.that(errors.Is(err, coordination.ErrHeld), "released by a wrong token: %v", err)
		e.must(b.Lease(name).ForceRelease(e.Context(), g.Token()))
		// Valid times overlap: only the operator knows that the tenures do not
		next, err := b.Lease(name).TryAcquire(e.Context())
		e.must(err)
		e.that(next.Token() > g.Token(), "token %v after %v", next.Token(), g.Token())
	}},
	{"D20_ForeverIsReleasedAsAnyOther", func(e *env) {
		cfg := config()
		cfg.Forever = true
		n := e.nodeWith(cfg)
		e.must(n.hold().Release(e.Context()))
		e.must(e.node().hold().Release(e.Context()))
		g := n.hold()
		log := losses(g)
		e.must(e.node().Lease(name).ForceRelease(e.Context(), g.Token()))
		e.sleep(e.learns())
		e.that(len(log.all()) == 1 && log.all()[0].Why == coordination.TakenOver, "told %v",
			log.all())
		obeyed(n.hold())
		e.must(n.Close(e.Context()))
		e.node().hold()
	}},
}

// holdMany acquires n leases concurrently.
func (e *env) holdMany(on *node, n int) []*coordination.Grant {
	grants := make([]*coordination.Grant, n)
	var wg sync.WaitGroup
	for i, l := range manyNames(n) {
		wg.Go(func() {
			g, err := on.Lease(l).Acquire(e.Context())
			if err != nil {
				e.Errorf("%s: %v", l, err)
			}
			grants[i] = g
		})
	}
	wg.Wait()
	if e.Failed() {
		e.FailNow()
	}
	return grants
}

// removes reports whether the store itself is a Remover.
func (e *env) removes() bool {
	_, ok := e.own().(leasestore.Remover)
	return ok
}
