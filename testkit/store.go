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

// StoreCall is one call of the lease store.
type StoreCall struct {
	Lease string
	Write bool
	Next  leasestore.Record // of a write
}

// Store is one member's connection to the lease store of the cluster. It is a coordination.Store,
// so that a test can open sessions other than the member's own.
type Store struct {
	to     *memory.Store
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
	_ coordination.Store = (*Store)(nil)
	_ leasestore.Watcher = (*Store)(nil)
)

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
	err = s.call(ctx, StoreCall{Lease: name}, func() error {
		r, v, err = s.to.Load(ctx, name)
		return err
	})
	if err != nil {
		return leasestore.Record{}, "", err
	}
	return r, v, nil
}

// Swap implements coordination.Store.
func (s *Store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (v leasestore.Version, err error) {
	err = s.call(ctx, StoreCall{name, true, next}, func() error {
		v, err = s.to.Swap(ctx, name, old, next)
		return err
	})
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

// call carries one call to the store and its answer back.
func (s *Store) call(ctx context.Context, c StoreCall, do func() error) error {
	f := s.faultsFor(c)
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

func (s *Store) faultsFor(c StoreCall) StoreFaults {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.mu.once {
		if o.match == nil || o.match(c) {
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
