package coordination_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// restorable is a store of which a backup can be made and restored.
type restorable struct {
	memory.Store
	mu    sync.Mutex
	names map[string]bool // ever written
}

func (r *restorable) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	r.mu.Lock()
	r.names[name] = true
	r.mu.Unlock()
	return r.Store.Swap(ctx, name, old, next)
}

// backup returns a function that restores the records of now, under new versions.
func (r *restorable) backup(t *testing.T) (restore func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := map[string]leasestore.Record{}
	for name := range r.names {
		was[name], _, _ = r.Load(t.Context(), name)
	}
	return func() {
		for name, record := range was {
			_, version, err := r.Load(t.Context(), name)
			if err == nil {
				_, err = r.Store.Swap(t.Context(), name, version, record)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// A restored record may name a session that lives, and does not know that it holds the lease. The
// session renewed its own record, and with it that lease: nobody could have it until it ended.
func TestSession_ARestoredStoreHoldsNoLeaseForever(t *testing.T) {
	onStage(t, func(s *stage) {
		store := &restorable{Store: memory.New(), names: map[string]bool{}}
		a, b := s.open(store), s.open(store)
		stays, err := a.Lease("stays").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		moves, err := a.Lease("moves").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.sleep(time.Minute)
		restore := store.backup(s.T)
		s.sleep(time.Minute)
		s.that(moves.Release(s.Context()) == nil, "not released")
		moved, err := b.Lease("moves").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		restore()

		s.sleep(30 * time.Minute) // b reads the records of its leases at times
		s.that(stays.Check() != nil && moved.Check() != nil,
			"tenures outlive the restore: %v, %v", stays.Check(), moved.Check())
		ctx, cancel := context.WithTimeout(s.Context(), 2*times.TTL)
		defer cancel()
		_, err = b.Lease("moves").Acquire(ctx)
		s.that(err == nil, "not acquired: %v", err)
		_, err = a.Lease("stays").Acquire(ctx)
		s.that(err == nil, "not acquired: %v", err)
		_, _ = a.Close(s.Context()), b.Close(s.Context())
	})
}
