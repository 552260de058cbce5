package coordination_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// deaf is a memory store that can go away, and whose watches can fall silent or end.
type deaf struct {
	flaky
	silent, ends atomic.Bool
}

func (s *deaf) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			if s.ends.Load() {
				return
			}
			if !s.silent.Load() && !yield(rec, err) {
				return
			}
		}
	}
}

func (s *deaf) LoadDocument(ctx context.Context, name string) ([]byte, leasestore.Version,
	error) {
	if s.away.Load() {
		return nil, "", errAway
	}
	return s.Store.LoadDocument(ctx, name)
}

func (s *deaf) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if s.away.Load() {
		return "", errAway
	}
	return s.Store.SwapDocument(ctx, name, old, next)
}

// Two sessions wait in the queue of a lease, and something happens to the first of them, or to the
// queue. When the lease is free, the second gets it without delay if the first is known to be dead,
// and within the TTL of a place in any case. Living waiters are served in order.
func TestFair_AQueueAtRestSurvives(t *testing.T) {
	const ttl = 20 * time.Second
	for name, c := range map[string]struct {
		happens func(t *testing.T, st memory.Store, first *deaf)
		waits   time.Duration // at most, after the release
		ordered bool
	}{
		"nothing": {func(*testing.T, memory.Store, *deaf) {}, time.Second, true},
		"the first dies": {func(_ *testing.T, _ memory.Store, first *deaf) {
			first.away.Store(true)
			time.Sleep(2 * ttl)
		}, time.Second, false},
		"the first dies a moment before": {func(_ *testing.T, _ memory.Store, first *deaf) {
			first.away.Store(true)
		}, ttl + 7*time.Second, false},
		"the watch of the first falls silent": {func(_ *testing.T, _ memory.Store, first *deaf) {
			first.silent.Store(true)
		}, ttl + 7*time.Second, false},
		"the watch of the first ends": {func(_ *testing.T, _ memory.Store, first *deaf) {
			first.ends.Store(true)
		}, 7 * time.Second, true},
		"the queue is deleted": {func(t *testing.T, st memory.Store, _ *deaf) {
			const queue = "concord.queue.x"
			_, v, err := st.LoadDocument(t.Context(), queue)
			if err != nil || v == "" {
				t.Fatal(v, err)
			}
			if _, err := st.SwapDocument(t.Context(), queue, v, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}, 7 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				away := &deaf{flaky: flaky{Store: st}}
				m := &many{T: t}
				fair := coordination.Config{TTL: ttl, Fair: true}
				holder := m.openWith(st, fair)
				first, second := m.openWith(away, fair), m.openWith(st, fair)
				g, err := holder.Lease("x").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan string, 2)
				ctx, stop := context.WithCancel(t.Context())
				for name, s := range map[string]*coordination.Session{"first": first,
					"second": second} {
					m.acquired.Go(func() {
						if name == "second" {
							time.Sleep(time.Second)
						}
						g, err := s.Lease("x").Acquire(ctx)
						if err != nil {
							return
						}
						served <- name
						time.Sleep(time.Second)
						_ = g.Release(ctx)
					})
				}
				time.Sleep(5 * ttl)
				c.happens(t, st, away)
				released := time.Now()
				if err := g.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				who := <-served
				took := time.Since(released)
				t.Logf("%s after %v", who, took)
				if took > c.waits {
					t.Errorf("the %s is served after %v, want %v at most", who, took, c.waits)
				}
				if c.ordered && who != "first" {
					t.Error("the second overtakes the first")
				}
				time.Sleep(5 * ttl)
				stop()
				m.acquired.Wait()
				for _, s := range []*coordination.Session{holder, first, second} {
					_ = s.Close(t.Context())
				}
			})
		})
	}
}
