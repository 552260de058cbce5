//go:build stores

package etcd_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

var (
	stops    = flag.Int("stops", 1, "number of stops of etcd for each duration")
	stopsAll = flag.Bool("stops-all", false, "stop etcd for each tenth from 0.5 to 1.5 TTL")
	stopsTTL = flag.Duration("stops-ttl", 3*time.Second, "TTL of the sessions")
	contests = flag.Int("contests", 25, "leases for which two or three sessions contend at a stop")
)

// TestStopped_NeverTwoHolders stops the etcd server for half a TTL to one and a half TTLs, while
// sessions contend for leases, and continues it. Sessions that have lost their leases begin again,
// and peers read their records at any moment. No two grants of a lease are ever valid at once.
func TestStopped_NeverTwoHolders(t *testing.T) {
	tenths := []int{12}
	if *stopsAll {
		tenths = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	}
	for i := range *stops { // as many at a time as -parallel says
		for _, n := range tenths {
			t.Run(fmt.Sprint(n, "/", i), func(t *testing.T) {
				t.Parallel()
				stopOnce(t, *stopsTTL, *stopsTTL*time.Duration(n)/10)
			})
		}
	}
}

// contest is one lease and the sessions that want it, each with a client of its own.
type contest struct {
	grants  []atomic.Pointer[coordination.Grant]
	tenures atomic.Int64
}

// overlap reports whether two grants are valid at one moment.
func (c *contest) overlap() bool {
	for i := range c.grants {
		for j := range c.grants[:i] {
			a, b := c.grants[i].Load(), c.grants[j].Load()
			if a != nil && b != nil && a.Remaining() > 0 && b.Remaining() > 0 &&
				a.Remaining() > 0 {
				return true
			}
		}
	}
	return false
}

// stopOnce lets pairs and triples of sessions contend, each for a lease of its own, stops etcd
// once, and watches them for three TTLs.
func stopOnce(t *testing.T, ttl, stop time.Duration) {
	t.Helper()
	c := startMembers(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	all := make([]*contest, *contests)
	for i := range all {
		all[i] = &contest{grants: make([]atomic.Pointer[coordination.Grant], 2+i%2)}
		for j := range all[i].grants {
			store := open(t, connect(t, c.endpoints()), fmt.Sprint("stop/", i, "/"))
			s, err := coordination.Open(store, coordination.Config{TTL: ttl})
			must(t, err)
			wg.Go(func() {
				all[i].hold(ctx, s, &all[i].grants[j])
				cancelled, end := context.WithCancel(context.Background())
				end()
				_ = s.Close(cancelled)
			})
		}
	}
	watch := func(d time.Duration) {
		for begun := time.Now(); time.Since(begun) < d; time.Sleep(time.Millisecond) {
			for i, k := range all {
				if k.overlap() {
					t.Errorf("etcd stopped for %v: two holders of lease %d", stop, i)
					return
				}
			}
		}
	}
	watch(ttl / 2)
	must(t, c.members[0].cmd.Process.Signal(syscall.SIGSTOP))
	watch(stop)
	must(t, c.members[0].cmd.Process.Signal(syscall.SIGCONT))
	watch(3 * ttl)
	cancel()
	wg.Wait()
	tenures := int64(0)
	for _, k := range all {
		tenures += k.tenures.Load()
	}
	if tenures < int64(*contests) {
		t.Errorf("%d leases were held %d times", *contests, tenures)
	}
	t.Logf("stopped for %v: %d contests, %d tenures", stop, *contests, tenures)
	c.members[0].kill()
}

// hold acquires the lease again and again.
func (c *contest) hold(ctx context.Context, s *coordination.Session,
	at *atomic.Pointer[coordination.Grant]) {
	for ctx.Err() == nil {
		g, err := s.Lease("x").Acquire(ctx)
		if err != nil {
			return
		}
		c.tenures.Add(1)
		at.Store(g)
		select {
		case <-g.Context().Done():
		case <-ctx.Done():
			return
		}
	}
}
