package coordination_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// slowStore takes a time for each call, half of it before the call has an effect.
type slowStore struct {
	memory.Store
	call time.Duration
}

func (s slowStore) wait(ctx context.Context) error {
	select {
	case <-time.After(s.call / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowStore) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	rec, version, err := s.Store.Load(ctx, name)
	if late := s.wait(ctx); late != nil {
		return leasestore.Record{}, "", late
	}
	return rec, version, err
}

func (s slowStore) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}
	version, err := s.Store.Swap(ctx, name, old, next)
	if late := s.wait(ctx); late != nil {
		return "", late
	}
	return version, err
}

// slowDatabase is such a store with batches, whose watches are as slow. Its first calls wait for
// connections, which take five calls.
type slowDatabase struct {
	slowStore
	connected func() time.Time
}

func newSlowDatabase(s slowStore) slowDatabase {
	return slowDatabase{s, sync.OnceValue(func() time.Time { return time.Now().Add(5 * s.call) })}
}

func (s slowDatabase) connect(ctx context.Context) error {
	select {
	case <-time.After(time.Until(s.connected())):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowDatabase) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if err := s.connect(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	return s.slowStore.Load(ctx, name)
}

func (s slowDatabase) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.connect(ctx); err != nil {
		return "", err
	}
	return s.slowStore.Swap(ctx, name, old, next)
}

func (s slowDatabase) SwapAll(ctx context.Context,
	swaps []leasestore.Swap) []leasestore.Swapped {
	out := make([]leasestore.Swapped, len(swaps))
	err := s.wait(ctx)
	for i, w := range swaps {
		if out[i].Err = err; err == nil {
			out[i].Version, out[i].Err = s.Store.Swap(ctx, w.Name, w.Old, w.Next)
		}
	}
	late := s.wait(ctx)
	for i := range out {
		if late != nil {
			out[i] = leasestore.Swapped{Err: late}
		}
	}
	return out
}

func (s slowDatabase) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			if s.wait(ctx) != nil || !yield(rec, err) {
				return
			}
		}
	}
}

// TestSlow_CallsOfAQuarterTTLCostNoLease makes each call of the store take up to a quarter of the
// default TTL, for ten TTLs, and then ends the holder as a crash does.
func TestSlow_CallsOfAQuarterTTLCostNoLease(t *testing.T) {
	const ttl = 8 * time.Second
	for _, part := range []float64{0.05, 0.1, 0.2, 0.25} {
		for _, batches := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				slow := slowStore{memory.New(), time.Duration(part * float64(ttl))}
				var a, b leasestore.Store = slow, slow
				if batches {
					a, b = newSlowDatabase(slow), newSlowDatabase(slow)
				}
				faulty.Slow(t, ttl, part, 10, a, b)
			})
		}
	}
}
