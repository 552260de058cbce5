package coordination_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// slowStore takes a time for each call, half of it before the call has an effect.
type slowStore struct {
	*memory.Store
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

// TestSlow_CallsOfAQuarterTTLCostNoLease makes each call of the store take up to a quarter of the
// default TTL, for ten TTLs, and then ends the holder as a crash does.
func TestSlow_CallsOfAQuarterTTLCostNoLease(t *testing.T) {
	const ttl = 8 * time.Second
	for _, part := range []float64{0.05, 0.1, 0.2, 0.25} {
		synctest.Test(t, func(t *testing.T) {
			s := slowStore{memory.New(), time.Duration(part * float64(ttl))}
			faulty.Slow(t, ttl, part, 10, s, s)
		})
	}
}
