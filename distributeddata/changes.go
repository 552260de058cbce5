package distributeddata

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/crdt"
)

// Changes yields the entry if it exists, and then its changes, batched over Config.NotifyInterval.
// It always yields the newest value, however long the loop body took for the previous one.
//
//	for c := range Cart.Changes(ctx, dd) {
//		added, removed := c.Value.Diff(c.Old)
//		…
//	}
//
// The loop ends when ctx is done and when the replicator has been closed for good. It waits for the
// first incarnation of the member and continues in every later one: changes while the member
// rejoins are yielded as one change. An invalid key, and a loop inside a function that the
// replicator runs, yield one Changed with ErrInvalid and end.
//
// The loop runs on the caller's goroutine and costs the replicator nothing. While its body runs,
// the loop keeps the previously yielded state in memory.
func (k Key[T]) Changes(ctx context.Context, r *Replicator) iter.Seq[*Changed[T]] {
	return changes(ctx, r, k)
}

// Changes yields every entry with the prefix, in the order of their names, and then the changes of
// all of them. Changes of one instant are yielded together, so an atomic update is not split. In
// all other respects it works like Key.Changes.
func (p Prefix[T]) Changes(ctx context.Context, r *Replicator) iter.Seq[*Changed[T]] {
	return changes(ctx, r, p)
}

func changes[T crdt.Value[T]](ctx context.Context, r *Replicator,
	e Entries[T]) iter.Seq[*Changed[T]] {
	return func(yield func(*Changed[T]) bool) {
		text, exact, err := e.pattern()
		if err == nil {
			err = r.reentrant()
		}
		if err != nil {
			yield(&Changed[T]{Key: e.named(text), Err: err})
			return
		}
		f := follower{text: text, exact: exact}
		l := r.loops.add(text, exact)
		defer r.loops.remove(l)
		for ctx.Err() == nil {
			l.rearm() // before the state is read
			flushed := r.flushed.next()
			_, lives, err := r.look()
			if err != nil || !f.follow(r.state(), func(key string, old, now entryView) bool {
				return ctx.Err() == nil && yield(change(e.named(key), old, now, r.now()))
			}) || !awaitAny(ctx, l.wake, lives) {
				return
			}
			r.gather(ctx, flushed)
		}
	}
}

// change returns the notice for the change of an entry from the state old to the state now.
func change[T crdt.Value[T]](k Key[T], old, now entryView, at time.Time) *Changed[T] {
	c := &Changed[T]{Key: k, Deleted: now.gone(), Expired: old.expired(now, at)}
	c.Value, c.Err = k.load(now.store, now.seen)
	if now.store.Empty() {
		c.Err = nil
	}
	c.Old, _ = k.load(old.store, old.seen)
	return c
}

// follower finds the differences between two published states, for a key or a prefix.
type follower struct {
	text  string
	exact bool
	was   *replicatorView // the state last followed, for a prefix
	held  entryView       // the entry as last notified, for a key
}

// follow calls tell for each entry that has changed, until tell returns false. It reports whether
// all calls returned true.
func (f *follower) follow(p *replicatorView, tell func(key string, old, now entryView) bool) bool {
	switch {
	case p == nil:
		return true
	case f.exact:
		old := f.held
		f.held = p.get(f.text)
		return old.same(f.held) || tell(f.text, old, f.held)
	}
	was := f.was
	f.was = p
	for key, t := range p.changes(was, f.text) {
		if !tell(key, t.old, t.now) {
			return false
		}
	}
	return true
}

// gather waits until Config.NotifyInterval has passed, flushed is closed or ctx is done, so that
// changes are batched.
func (r *Replicator) gather(ctx context.Context, flushed <-chan struct{}) {
	r.mu.Lock()
	interval := r.mu.cfg.NotifyInterval
	r.mu.Unlock()
	if interval <= 0 {
		return
	}
	t := time.NewTimer(interval)
	defer t.Stop()
	select {
	case <-t.C:
	case <-flushed:
	case <-ctx.Done():
	}
}

// awaitAny waits for one of two events. It returns false if ctx is done first.
func awaitAny(ctx context.Context, a, b <-chan struct{}) bool {
	select {
	case <-a:
	case <-b:
	case <-ctx.Done():
		return false
	}
	return true
}

// loops wakes the loops over changes, each for its own key or prefix only. Its methods are safe for
// concurrent use.
type loops struct {
	running atomic.Int64 // number of loops: without any, a change costs one load
	mu      sync.Mutex
	patterns[*loop]
}

// loop is one loop over changes.
type loop struct {
	pattern
	wake chan struct{} // has an element if something may have changed since rearm
}

func (l *loop) rearm() {
	select {
	case <-l.wake:
	default:
	}
}

func (l *loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (s *loops) add(text string, exact bool) *loop {
	l := &loop{pattern{text: text, exact: exact}, make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patterns.add(l)
	s.running.Add(1)
	return l
}

func (s *loops) remove(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patterns.remove(l)
	s.running.Add(-1)
}

// changed wakes the loops over keys that have changed in the published state.
func (s *loops) changed(keys []string) {
	if s.running.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.matching(key, (*loop).rouse)
	}
}

// rouse wakes all loops: the published state may have changed anywhere.
func (s *loops) rouse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all((*loop).rouse)
}

// news wakes any number of goroutines that wait for the next event. An event without waiters costs
// one load.
type news struct{ waited atomic.Pointer[chan struct{}] }

// next returns a channel that the next event closes.
func (n *news) next() <-chan struct{} {
	for {
		if c := n.waited.Load(); c != nil {
			return *c
		}
		n.waited.CompareAndSwap(nil, new(make(chan struct{})))
	}
}

// tell signals the event.
func (n *news) tell() {
	if n.waited.Load() == nil {
		return
	}
	if c := n.waited.Swap(nil); c != nil {
		close(*c)
	}
}
