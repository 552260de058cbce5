package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// queueChecks check sessions that wait in order, if the store is a Queuer.
var queueChecks = []check{
	{"B16_WaitersAreServedInOrder", func(e *env) {
		e.needsAbility(e.queues(), "Queuer")
		g := e.fair().hold()
		var served []int
		var wg sync.WaitGroup
		for i := range 5 {
			n := e.fair()
			wg.Go(func() {
				g, err := n.queue()
				if err != nil {
					e.Errorf("waiter %d: %v", i, err)
					return
				}
				served = append(served, i) // the lease guards it
				time.Sleep(time.Second)
				e.that(g.Release(e.Context()) == nil, "waiter %d: not released", i)
			})
			e.sleep(ttl) // in time for each waiter to show that it is alive
		}
		e.must(g.Release(e.Context()))
		wg.Wait()
		e.that(slices.IsSorted(served) && len(served) == 5, "served in the order %v", served)
	}},
	{"B16_ADeadWaiterIsPassedOver", func(e *env) {
		e.needsAbility(e.queues(), "Queuer")
		g := e.fair().hold()
		for range 3 {
			dead := e.fair()
			go func() { _, _ = dead.queue() }()
			e.sleep(time.Second)
			dead.crash()
		}
		next := e.fair().waits()
		e.sleep(2 * time.Second)
		t := time.Now()
		e.must(g.Release(e.Context()))
		<-next
		e.that(since(t) <= stale+2*retry, "granted after %v", since(t))
	}},
	{"B16_ADeadWaitersTTLHoldsNobodyUp", func(e *env) {
		e.needsAbility(e.queues(), "Queuer")
		g := e.fair().hold()
		dead := e.longFair()
		go func() { _, _ = dead.queue() }()
		e.sleep(time.Second)
		dead.crash()
		next := e.longFair().waits() // its Margin is half an hour
		e.sleep(2 * time.Second)
		t := time.Now()
		e.must(g.Release(e.Context()))
		<-next
		e.that(since(t) <= stale+2*retry,
			"granted after %v, behind a dead waiter with a TTL of a day", since(t))
	}},
	{"B16_WhoGivesUpHoldsNobodyUp", func(e *env) {
		e.needsAbility(e.queues(), "Queuer")
		g := e.fair().hold()
		_, err := e.fair().acquire(time.Second)
		e.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		closed := e.fair()
		go func() { _, _ = closed.queue() }()
		e.sleep(time.Second)
		e.must(closed.Close(e.Context()))
		next := e.fair().waits()
		e.sleep(time.Second)
		t := time.Now()
		e.must(g.Release(e.Context()))
		<-next
		e.that(since(t) <= retry, "granted after %v", since(t))
	}},
	{"B16_OneAttemptDoesNotWait", func(e *env) {
		e.needsAbility(e.queues(), "Queuer")
		g := e.fair().hold()
		first := e.fair()
		next := first.waits()
		e.sleep(time.Second)
		first.set(fault{cut: true})
		e.must(g.Release(e.Context()))
		e.must(e.fair().hold().Release(e.Context()))
		first.set(fault{})
		<-next
	}},
}

// queues reports whether the store itself is a Queuer.
func (e *env) queues() bool {
	_, ok := e.own().(leasestore.Queuer)
	return ok
}

// fair returns a node that waits in order.
func (e *env) fair() *node {
	cfg := config()
	cfg.Fair = true
	return e.nodeWith(cfg)
}

// longFair returns a node that waits in order, with a TTL of a day.
func (e *env) longFair() *node {
	cfg := config()
	cfg.Fair, cfg.TTL = true, 24*time.Hour
	return e.nodeWith(cfg)
}

// queue acquires the lease; it may be called from any goroutine.
func (n *node) queue() (*coordination.Grant, error) {
	ctx, cancel := context.WithTimeout(n.e.Context(), time.Hour)
	defer cancel()
	return n.Lease(name).Acquire(ctx)
}

// waits acquires the lease in the background, and fails the test if that fails.
func (n *node) waits() <-chan struct{} {
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		if _, err := n.queue(); err != nil {
			n.e.Errorf("%v", err)
		}
	}()
	return granted
}

// checkQueue checks the store alone.
func checkQueue(e *env) {
	q, ok := e.store.(leasestore.Queuer)
	e.needsAbility(ok, "Queuer")
	place := func(nonce string, beat uint64) leasestore.Waiter {
		return leasestore.Waiter{Nonce: nonce, Beat: beat, TTL: ttl}
	}
	finds := func(p leasestore.Waiter, want ...leasestore.Waiter) {
		e.Helper()
		ahead, err := q.Enqueue(e.Context(), name, p)
		e.that(err == nil && slices.Equal(ahead, want), "%v stands behind %v, not %v, %v", p,
			ahead, want, err)
	}
	finds(place("a", 1))
	finds(place("b", 1), place("a", 1))
	finds(place("c", 1), place("a", 1), place("b", 1))
	finds(place("a", 5))
	finds(place("a", 2)) // late
	finds(place("b", 2), place("a", 5))
	e.must(q.Leave(e.Context(), name, []leasestore.Waiter{place("a", 4), place("nobody", 1)}))
	finds(place("b", 3), place("a", 5))
	e.must(q.Leave(e.Context(), name, []leasestore.Waiter{place("a", 5), place("b", 7)}))
	finds(place("c", 2))
	finds(place("a", 6), place("c", 2))
	ahead, err := q.Enqueue(e.Context(), "another", place("x", 1))
	e.that(err == nil && len(ahead) == 0, "queues of two names: %v %v", ahead, err)

	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	_, err = q.Enqueue(ctx, name, place("late", 1))
	e.that(err != nil, "a place after the context ended")
	e.that(q.Leave(ctx, name, []leasestore.Waiter{place("c", 2)}) != nil,
		"left after the context ended")
	finds(place("a", 7), place("c", 2))
	checkQueueOrder(e, q)
}

// checkQueueOrder takes places concurrently and checks that all see one order.
func checkQueueOrder(e *env, q leasestore.Queuer) {
	const n = 30
	before := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			ahead, err := q.Enqueue(e.Context(), "crowd",
				leasestore.Waiter{Nonce: fmt.Sprint(i), Beat: 1, TTL: ttl})
			if err != nil {
				e.Errorf("%v", err)
			}
			before[i] = len(ahead)
		})
	}
	wg.Wait()
	slices.Sort(before)
	for i, got := range before {
		e.that(got == i, "%d places are at %v", n, before)
	}
}

// Enqueue fails if the store is not a Queuer.
func (l *link) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	f := l.begin(name)
	defer l.end(name)
	q, ok := l.store.(leasestore.Queuer)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = l.through(ctx, f, func() (err error) {
		ahead, err = q.Enqueue(ctx, name, p)
		return err
	})
	return ahead, err
}

// Leave fails if the store is not a Queuer.
func (l *link) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	f := l.begin(name)
	defer l.end(name)
	q, ok := l.store.(leasestore.Queuer)
	if !ok {
		return errors.ErrUnsupported
	}
	return l.through(ctx, f, func() error { return q.Leave(ctx, name, gone) })
}

// Enqueue fails if the store is not a Queuer.
func (g *gateway) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	q, ok := g.store.(leasestore.Queuer)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) {
		ahead, err = q.Enqueue(ctx, name, p)
	}); ended != nil {
		return nil, ended
	}
	return ahead, err
}

// Leave fails if the store is not a Queuer.
func (g *gateway) Leave(ctx context.Context, name string, gone []leasestore.Waiter) (err error) {
	q, ok := g.store.(leasestore.Queuer)
	if !ok {
		return errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) {
		err = q.Leave(ctx, name, gone)
	}); ended != nil {
		return ended
	}
	return err
}
