package testkit

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// ErrAnswerLost is returned by a call of a Store if StoreFaults dropped the call or its answer and
// the context ended.
var ErrAnswerLost = errors.New("testkit: no answer from the lease store")

// StoreFaults are the faults of one member's connection to the lease store. The zero value has
// none.
type StoreFaults struct {
	// Err is returned by calls; nothing is read or written.
	Err error
	// Away makes calls block until their context ends; nothing is read or written.
	Away bool
	// Delay is the time until a call reaches the store, Answer the time until its answer returns.
	// If the context ends before the call reaches the store, nothing is done; if it ends
	// afterwards, a write has happened.
	Delay, Answer time.Duration
	// LoseAnswer makes calls take effect and then block until their context ends.
	LoseAnswer bool
}

// StoreCall is one call of the lease store. In a batch, each swap is matched as a StoreCall of its
// own, and the faults of a match apply to the whole batch.
type StoreCall struct {
	Lease    string            // or the name of a session record; empty for a document
	Document string            // empty for a lease
	Write    bool              // also of a removal
	Next     leasestore.Record // of a write of a lease, unless it is a removal
}

// Store is a connection to a lease store, with configurable faults: each member of a cluster has
// one, and NewStore returns one for tests without a cluster. It is a coordination.Store, so that a
// test can open sessions other than the member's own, and has every ability that sessions and
// components use: it keeps session records, watches, makes batches, removes records and keeps
// documents. The option LeaseStore takes abilities away.
type Store struct {
	to     memory.Store
	note   func(format string, args ...any)
	flying atomic.Int64 // calls that will return by themselves

	mu struct {
		sync.Mutex
		faults StoreFaults
		once   []*storeOnce
		frozen chan struct{} // closed on thaw; nil if not frozen
		gone   bool          // the member is gone
	}
}

type storeOnce struct {
	match  func(StoreCall) bool
	faults StoreFaults
	hit    atomic.Bool
}

var (
	_ coordination.Store       = (*Store)(nil)
	_ leasestore.Watcher       = (*Store)(nil)
	_ leasestore.SessionKeeper = (*Store)(nil)
	_ leasestore.Remover       = (*Store)(nil)
	_ leasestore.Batcher       = (*Store)(nil)
	_ leasestore.Documents     = (*Store)(nil)
)

// NewStore returns a connection to a store. Connections to the same store exclude each other's
// sessions, as those of different processes do.
func NewStore(to memory.Store) *Store {
	return &Store{to: to, note: func(string, ...any) {}}
}

// Set replaces the faults.
func (s *Store) Set(f StoreFaults) {
	s.note("%+v", f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = f
}

// Next applies the faults to the next call for which match returns true, and only to that call. A
// nil match matches every call. hit reports whether a call has matched. match must not use the
// store.
func (s *Store) Next(match func(StoreCall) bool, f StoreFaults) (hit func() bool) {
	s.note("for one call %+v", f)
	o := &storeOnce{match: match, faults: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.once = append(s.mu.once, o)
	return o.hit.Load
}

// Load implements coordination.Store.
func (s *Store) Load(ctx context.Context,
	name string) (r leasestore.Record, v leasestore.Version, err error) {
	err = s.call(ctx, func() error {
		r, v, err = s.to.Load(ctx, name)
		return err
	}, StoreCall{Lease: name})
	if err != nil {
		return leasestore.Record{}, "", err
	}
	return r, v, nil
}

// Swap implements coordination.Store.
func (s *Store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (v leasestore.Version, err error) {
	err = s.call(ctx, func() error {
		v, err = s.to.Swap(ctx, name, old, next)
		return err
	}, StoreCall{Lease: name, Write: true, Next: next})
	if err != nil {
		return "", err
	}
	return v, nil
}

// SwapAll implements leasestore.Batcher.
func (s *Store) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	calls := make([]StoreCall, len(swaps))
	for i, w := range swaps {
		calls[i] = StoreCall{Lease: w.Name, Write: true, Next: w.Next}
	}
	out := make([]leasestore.Swapped, len(swaps))
	err := s.call(ctx, func() error {
		for i, w := range swaps {
			out[i].Version, out[i].Err = s.to.Swap(ctx, w.Name, w.Old, w.Next)
		}
		return nil
	}, calls...)
	if err != nil {
		for i := range out {
			out[i] = leasestore.Swapped{Err: err}
		}
	}
	return out
}

// KeepsSessions implements leasestore.SessionKeeper.
func (s *Store) KeepsSessions() bool { return true }

// Remove implements leasestore.Remover.
func (s *Store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	return s.call(ctx, func() error { return s.to.Remove(ctx, name, old) },
		StoreCall{Lease: name, Write: true})
}

// LoadDocument implements leasestore.Documents.
func (s *Store) LoadDocument(ctx context.Context,
	name string) (text []byte, v leasestore.Version, err error) {
	err = s.call(ctx, func() error {
		text, v, err = s.to.LoadDocument(ctx, name)
		return err
	}, StoreCall{Document: name})
	if err != nil {
		return nil, "", err
	}
	return text, v, nil
}

// SwapDocument implements leasestore.Documents.
func (s *Store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (v leasestore.Version, err error) {
	err = s.call(ctx, func() error {
		v, err = s.to.SwapDocument(ctx, name, old, next)
		return err
	}, StoreCall{Document: name, Write: true})
	if err != nil {
		return "", err
	}
	return v, nil
}

// Watch implements leasestore.Watcher. Hints are lost during a fault or a freeze.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for r, err := range s.to.Watch(ctx, name) {
			s.mu.Lock()
			deaf := s.mu.gone || s.mu.frozen != nil || s.mu.faults != StoreFaults{}
			s.mu.Unlock()
			if !deaf && !yield(r, err) {
				return
			}
		}
	}
}

// call carries one call to the store and its answer back. A batch has several parts.
func (s *Store) call(ctx context.Context, do func() error, parts ...StoreCall) error {
	f := s.faultsFor(parts)
	switch {
	case f.Err != nil:
		return f.Err
	case f.Away:
		<-ctx.Done()
		return errors.Join(ErrAnswerLost, context.Cause(ctx))
	}
	s.flying.Add(1)
	defer s.flying.Add(-1)
	if err := s.travel(ctx, f.Delay); err != nil {
		return err
	}
	err := do()
	if f.LoseAnswer {
		s.flying.Add(-1)
		defer s.flying.Add(1)
		<-ctx.Done()
		return errors.Join(ErrAnswerLost, context.Cause(ctx))
	}
	if lost := s.travel(ctx, f.Answer); lost != nil {
		return lost
	}
	return err
}

// travel waits for d, and then while the member is frozen.
func (s *Store) travel(ctx context.Context, d time.Duration) error {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return errors.Join(ErrAnswerLost, context.Cause(ctx))
		}
	}
	for {
		s.mu.Lock()
		frozen, gone := s.mu.frozen, s.mu.gone
		s.mu.Unlock()
		if gone {
			frozen = nil // wait for the context
		} else if frozen == nil {
			return nil
		}
		s.flying.Add(-1)
		select {
		case <-frozen:
			s.flying.Add(1)
		case <-ctx.Done():
			s.flying.Add(1)
			return errors.Join(ErrAnswerLost, context.Cause(ctx))
		}
	}
}

func (s *Store) faultsFor(parts []StoreCall) StoreFaults {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.mu.once {
		if o.match == nil || slices.ContainsFunc(parts, o.match) {
			s.mu.once = slices.Delete(s.mu.once, i, i+1)
			o.hit.Store(true)
			return o.faults
		}
	}
	return s.mu.faults
}

func (s *Store) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults, s.mu.once = StoreFaults{}, nil
}

func (s *Store) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.frozen == nil {
		s.mu.frozen = make(chan struct{})
	}
}

func (s *Store) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.frozen != nil {
		close(s.mu.frozen)
		s.mu.frozen = nil
	}
}

// die prevents further calls from reaching the store.
func (s *Store) die() {
	s.mu.Lock()
	s.mu.gone = true
	s.mu.Unlock()
	s.thaw() // calls waiting for the thaw now wait for their context
}
