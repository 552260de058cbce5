package leasetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// queueChecks check sessions that wait in order, if the store keeps documents.
var queueChecks = []check{
	{"B16_WaitersAreServedInOrder", func(e *env) {
		e.needsAbility(e.queues(), "Documents")
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
		e.needsAbility(e.queues(), "Documents")
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
		e.needsAbility(e.queues(), "Documents")
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
		e.needsAbility(e.queues(), "Documents")
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
		e.needsAbility(e.queues(), "Documents")
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

// queues reports whether the store itself keeps documents.
func (e *env) queues() bool {
	_, ok := e.own().(leasestore.Documents)
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

// LoadDocument fails if the store keeps no documents.
func (l *link) LoadDocument(ctx context.Context,
	name string) (text []byte, ver leasestore.Version, err error) {
	f := l.begin(name, "document ")
	defer l.end(name, "document ")
	d, ok := l.store.(leasestore.Documents)
	if !ok {
		return nil, "", errors.ErrUnsupported
	}
	if err = l.through(ctx, f, func() (err error) {
		text, ver, err = d.LoadDocument(ctx, name)
		return err
	}); err != nil {
		return nil, "", err
	}
	return text, ver, nil
}

// SwapDocument fails if the store keeps no documents.
func (l *link) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (ver leasestore.Version, err error) {
	f := l.begin(name, "document ")
	defer l.end(name, "document ")
	d, ok := l.store.(leasestore.Documents)
	if !ok {
		return "", errors.ErrUnsupported
	}
	if err = l.through(ctx, f, func() (err error) {
		ver, err = d.SwapDocument(ctx, name, old, next)
		return err
	}); err != nil {
		return "", err
	}
	return ver, nil
}

// LoadDocument fails if the store keeps no documents.
func (g *gateway) LoadDocument(ctx context.Context,
	name string) (text []byte, ver leasestore.Version, err error) {
	d, ok := g.store.(leasestore.Documents)
	if !ok {
		return nil, "", errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) {
		text, ver, err = d.LoadDocument(ctx, name)
	}); ended != nil {
		return nil, "", ended
	}
	return text, ver, err
}

// SwapDocument fails if the store keeps no documents.
func (g *gateway) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (ver leasestore.Version, err error) {
	d, ok := g.store.(leasestore.Documents)
	if !ok {
		return "", errors.ErrUnsupported
	}
	if ended := g.outside(ctx, func(ctx context.Context) {
		ver, err = d.SwapDocument(ctx, name, old, next)
	}); ended != nil {
		return "", ended
	}
	return ver, err
}
