// Package memory keeps leases in the memory of one process. It is the reference for all other
// stores, and serves tests and programs that use the lease API before they have a second process.
// Sessions exclude each other if they share one Store. The package uses no clock and no goroutine.
//
// docs/stores.md compares the stores. Program examples/fencing uses this one.
package memory

import (
	"context"
	"iter"
	"strconv"
	"sync"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Store keeps leases in memory. It may be used by many goroutines and sessions. Its tokens last as
// long as it. Use New.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents
}

type store struct {
	mu struct {
		sync.Mutex
		entries map[string]*entry
		writes  uint64 // ever made; the last one is the newest version
		texts   map[string]text
	}
}

type entry struct {
	record  leasestore.Record
	version uint64
	changed chan struct{} // closed with the next change
}

// New returns an empty store.
func New() Store { return &store{} }

// Load implements leasestore.Store.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return leasestore.Record{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.mu.entries[name]; ok {
		return e.record, e.mark(), nil
	}
	return leasestore.Record{}, "", nil
}

// Swap implements leasestore.Store.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entryLocked(name)
	if e.mark() != old {
		return "", leasestore.ErrConflict
	}
	s.mu.writes++
	e.record, e.version = next, s.mu.writes
	close(e.changed)
	e.changed = make(chan struct{})
	return e.mark(), nil
}

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.mu.entries[name]
	if !ok || e.mark() != old {
		return leasestore.ErrConflict
	}
	close(e.changed)
	delete(s.mu.entries, name)
	return nil
}

// Watch implements leasestore.Watcher.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for {
			s.mu.Lock()
			e := s.entryLocked(name)
			record, changed := e.record, e.changed
			s.mu.Unlock()
			if !yield(record, nil) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *store) entryLocked(name string) *entry {
	if s.mu.entries == nil {
		s.mu.entries = map[string]*entry{}
	}
	e, ok := s.mu.entries[name]
	if !ok {
		e = &entry{changed: make(chan struct{})}
		s.mu.entries[name] = e
	}
	return e
}

// mark returns the version; it is empty before the first write.
func (e *entry) mark() leasestore.Version {
	if e.version == 0 {
		return ""
	}
	return leasestore.Version(strconv.FormatUint(e.version, 10))
}
