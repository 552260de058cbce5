//go:build stores

package etcd_test

import (
	"context"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
)

// BenchmarkAcquire compares an acquire with the plain conditional transaction that it cannot do without, and
// with the other requests that it is made of, in turns.
func BenchmarkAcquire(b *testing.B) {
	b.Run("members=1", func(b *testing.B) { benchAcquire(b, server(b)) })
	b.Run("members=3", func(b *testing.B) { benchAcquire(b, startCluster(b).endpoints()) })
}

func benchAcquire(b *testing.B, endpoints []string) {
	client := connect(b, endpoints)
	keys := prefix(b)
	store := open(b, client, keys)
	timed := &timedStore{Store: store}
	session, err := coordination.Open(timed, coordination.Config{})
	must(b, err)
	b.Cleanup(func() { _ = session.Close(context.Background()) })
	lease, err := client.Grant(b.Context(), 60)
	must(b, err)
	var rev int64
	parts := []struct {
		name string
		do   func() error
		took time.Duration
	}{
		{name: "transaction", do: func() error {
			r, err := client.Txn(b.Context()).If(clientv3.Compare(clientv3.ModRevision(keys+"raw"), "=", rev)).Then(clientv3.OpPut(keys+"raw", "value")).Commit()
			if err == nil {
				rev = r.Header.Revision
			}
			return err
		}},
		{name: "acquire", do: func() error {
			timed.reset()
			_, err := session.Lease("bench").TryAcquire(b.Context())
			timed.note()
			return err
		}},
		{name: "release", do: func() error {
			g, err := session.Lease("bench").TryAcquire(b.Context()) // the one that is held: no request
			if err != nil {
				return err
			}
			return g.Release(b.Context())
		}},
		{name: "load", do: func() error { _, _, err := store.Load(b.Context(), "bench"); return err }},
		{name: "prolong", do: func() error { _, err := client.KeepAliveOnce(b.Context(), lease.ID); return err }},
	}
	for b.Loop() {
		for i := range parts {
			begun := time.Now()
			if err := parts[i].do(); err != nil {
				b.Fatalf("%s: %v", parts[i].name, err)
			}
			parts[i].took += time.Since(begun)
		}
	}
	for _, p := range parts {
		b.ReportMetric(float64(p.took.Microseconds())/float64(b.N), p.name+"-µs")
	}
	b.ReportMetric(float64(timed.loads.Microseconds())/float64(b.N), "its-load-µs")
	b.ReportMetric(float64(timed.swaps.Microseconds())/float64(b.N), "its-swap-µs")
	b.ReportMetric(float64(parts[1].took)/float64(parts[0].took), "acquire/transaction")
}

type timedStore struct {
	coordination.Store
	mu           sync.Mutex
	load, swap   time.Duration
	loads, swaps time.Duration
}

func (s *timedStore) reset() { s.mu.Lock(); s.load, s.swap = 0, 0; s.mu.Unlock() }
func (s *timedStore) note()  { s.mu.Lock(); s.loads += s.load; s.swaps += s.swap; s.mu.Unlock() }

func (s *timedStore) Load(ctx context.Context, name string) (coordination.Record, coordination.Version, error) {
	begun := time.Now()
	r, v, err := s.Store.Load(ctx, name)
	s.mu.Lock()
	s.load += time.Since(begun)
	s.mu.Unlock()
	return r, v, err
}

func (s *timedStore) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
	begun := time.Now()
	v, err := s.Store.Swap(ctx, name, old, next)
	s.mu.Lock()
	s.swap += time.Since(begun)
	s.mu.Unlock()
	return v, err
}
