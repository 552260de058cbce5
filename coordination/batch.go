package coordination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/concord-go/concord/coordination/leasestore"
)

// batch makes the swaps of a session. Up to swapsAtOnce are calls of their own. If more are due at
// the same time, they wait, and each call that ends is followed by one call for all that wait. So
// that they do not wait for a slow call, another one begins for them after a while.
type batch struct {
	store leasestore.Batcher
	mu    struct {
		sync.Mutex
		calls   int        // under way; at least swapsAtOnce if a swap with a live context waits
		waiting []*pending // in order of arrival
	}
}

// pending is a swap that waits for a call.
type pending struct {
	leasestore.Swap
	ctx  context.Context
	done chan leasestore.Swapped // capacity one
}

// swapsAtOnce is the number of concurrent calls for swaps, if the store is a Batcher. With more,
// batches would be smaller.
const swapsAtOnce = 2

// On a store whose calls take longer than OperationTimeout/gatherPart, swaps that wait begin a call
// after that time, if less than callsAtMost are under way.
const (
	gatherPart  = 24
	callsAtMost = 4
)

// newBatch returns nil if each swap is to be a call of its own: because the store is no Batcher, or
// because the leases have renewals of their own, which must not wait.
func (s *Session) newBatch() *batch {
	if b, able := s.store.(leasestore.Batcher); able && s.Shared() {
		return &batch{store: b}
	}
	return nil
}

// batched is like swap, but may share a call with swaps of other names. Renewals of the session
// record share none, because they must not wait. It runs in a goroutine of s.work.
func (s *Session) batched(ctx context.Context, w leasestore.Swap) (leasestore.Version, error) {
	if s.batch == nil || strings.HasPrefix(w.Name, leasestore.SessionRecords) {
		return s.swap(ctx, w.Name, w.Old, w.Next)
	}
	p := &pending{Swap: w, ctx: ctx, done: make(chan leasestore.Swapped, 1)}
	if s.batch.enter(p) {
		defer s.endCall()
		return s.swap(ctx, w.Name, w.Old, w.Next)
	}
	begun := s.clock.Read().Mono
	got := s.wait(p)
	s.called(swaps, begun, got.Err)
	return got.Version, got.Err
}

// enter reports whether p can be a call of its own at once. Otherwise p waits.
func (b *batch) enter(p *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.calls < swapsAtOnce {
		b.mu.calls++
		return true
	}
	b.mu.waiting = append(b.mu.waiting, p)
	return false
}

// wait returns the outcome of a swap that waits. If its context ends before the swap is taken into
// a call, the swap was certainly not made.
func (s *Session) wait(p *pending) leasestore.Swapped {
	gathered := newAlarm(s.clock)
	gathered.within(s.cfg.OperationTimeout / gatherPart)
	defer gathered.off()
	select {
	case got := <-p.done:
		return got
	case <-gathered.rings:
		if s.batch.more(p) {
			s.endCall()
		}
	case <-p.ctx.Done():
	}
	select {
	case got := <-p.done:
		return got
	case <-p.ctx.Done():
	}
	if s.batch.withdraw(p) {
		return leasestore.Swapped{Err: fmt.Errorf("%w: waited for other calls: %w",
			leasestore.ErrRefused, context.Cause(p.ctx))}
	}
	return <-p.done // the call has a time of its own
}

// more reports whether p still waits and a call may begin for it, which then counts.
func (b *batch) more(p *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.calls >= callsAtMost || !slices.Contains(b.mu.waiting, p) {
		return false
	}
	b.mu.calls++
	return true
}

// withdraw reports whether p still waited.
func (b *batch) withdraw(p *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.mu.waiting, p)
	if i < 0 {
		return false
	}
	b.mu.waiting = slices.Delete(b.mu.waiting, i, i+1)
	return true
}

// endCall ends a call, and begins one for the swaps that wait. It runs in a goroutine of s.work.
func (s *Session) endCall() {
	if next := s.batch.next(); next != nil {
		s.work.Go(func() {
			defer s.endCall()
			ctx, cancel := s.timeout(s.calls)
			defer cancel()
			s.batch.swapAll(ctx, next)
		})
	}
}

// next returns the swaps of the next call, or nil if none waits. A swap whose context has ended is
// about to be withdrawn.
func (b *batch) next() (next []*pending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.waiting = slices.DeleteFunc(b.mu.waiting, func(p *pending) bool {
		due := len(next) < leasestore.MaxBatch && p.ctx.Err() == nil
		if due {
			next = append(next, p)
		}
		return due
	})
	if len(next) == 0 {
		b.mu.calls--
	}
	return next
}

// swapAll makes swaps in one call. If the store panics or breaks its contract, the outcomes are
// unknown.
func (b *batch) swapAll(ctx context.Context, all []*pending) {
	swaps := make([]leasestore.Swap, len(all))
	for i, p := range all {
		swaps[i] = p.Swap
	}
	var got []leasestore.Swapped
	defer func() {
		err := fmt.Errorf("store returned %d outcomes for %d swaps", len(got), len(all))
		if p := recover(); p != nil {
			err = panicked(p)
		}
		for i, p := range all {
			if len(got) == len(all) {
				p.done <- got[i]
			} else {
				p.done <- leasestore.Swapped{Err: err}
			}
		}
	}()
	got = b.store.SwapAll(ctx, swaps)
}
