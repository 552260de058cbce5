//go:build stores

package etcd_test

import (
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

var queued = flag.Int("queued", 50, "number of sessions that wait in a queue")

// TestQueue_EveryWaiterIsServed lets sessions wait in the queue of a lease. Each holds it for a
// moment. It logs how long a lease is on its way from one to the next.
func TestQueue_EveryWaiterIsServed(t *testing.T) {
	keys := prefix(t)
	cfg := coordination.Config{Fair: true}
	first, err := coordination.Open(open(t, connect(t, server(t)), keys), cfg)
	must(t, err)
	g, err := first.Lease("x").Acquire(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var passed []time.Duration
	var left time.Time
	var all sync.WaitGroup
	for range *queued {
		s, err := coordination.Open(open(t, connect(t, server(t)), keys), cfg)
		must(t, err)
		all.Go(func() {
			defer s.Close(context.Background())
			g, err := s.Lease("x").Acquire(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			passed = append(passed, time.Since(left))
			left = time.Now()
			mu.Unlock()
			_ = g.Release(ctx)
		})
	}
	time.Sleep(15 * time.Second)
	mu.Lock()
	left = time.Now()
	mu.Unlock()
	must(t, g.Release(ctx))
	begun := time.Now()
	all.Wait()
	must(t, first.Close(t.Context()))
	slices.Sort(passed)
	if len(passed) != *queued {
		t.Fatalf("%d of %d waiters served", len(passed), *queued)
	}
	t.Logf("%d waiters served in %v: %v each at the median, %v at most", len(passed),
		time.Since(begun).Round(time.Millisecond), passed[len(passed)/2], passed[len(passed)-1])
}
