package distributeddata

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/crdt"
)

// Changes yields the entry if it is there, and then its changes, gathered for Config.NotifyInterval: always the
// newest value, however long the loop was busy with the one before.
//
//	for c := range Cart.Changes(ctx, dd) {
//		added, removed := c.Value.Diff(c.Old)
//		…
//	}
//
// The loop ends with ctx, and when the replicator has been closed for good. It goes on in every life of the member: what
// changed between two lives is told as one change. It waits for the first. A key that cannot be used, and a loop in a
// function that the replicator runs, yield one Changed with ErrInvalid or ErrReentrant and end.
//
// The loop runs on the goroutine of the caller and costs the replicator nothing. While its body runs, it keeps what it
// was told last in memory.
func (k Key[T]) Changes(ctx context.Context, r *Replicator) iter.Seq[*Changed[T]] {
	return changes(ctx, r, k)
}

// Changes yields every entry with the prefix, in the order of their names, and then the changes of any of them, those
// of one instant together: what an atomic update changed is not torn apart. In all else it is as Key.Changes.
func (p Prefix[T]) Changes(ctx context.Context, r *Replicator) iter.Seq[*Changed[T]] {
	return changes(ctx, r, p)
}

func changes[T crdt.Value[T]](ctx context.Context, r *Replicator, e Entries[T]) iter.Seq[*Changed[T]] {
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
		for ctx.Err() == nil {
			news, flushed := r.news.next(), r.flushed.next() // before the state is looked at
			_, lives, err := r.look()
			if err != nil || !f.follow(r.state(), func(key string, old, now told) bool {
				return ctx.Err() == nil && yield(change(e.named(key), old, now, r.now()))
			}) || !awaitAny(ctx, news, lives) {
				return
			}
			r.gather(ctx, flushed)
		}
	}
}

// change is the notice for the change from one state of an entry to another.
func change[T crdt.Value[T]](k Key[T], old, now told, at time.Time) *Changed[T] {
	c := &Changed[T]{Key: k, Deleted: now.gone(), Expired: old.expired(now, at)}
	c.Value, c.Err = k.load(now.store, now.seen)
	if now.store.Empty() {
		c.Err = nil
	}
	c.Old, _ = k.load(old.store, old.seen)
	return c
}

// follower finds what has changed from one published state to another, for a key or a prefix.
type follower struct {
	text  string
	exact bool
	was   *published // of a prefix
	held  told       // of a key
}

// follow calls f for each entry that has changed, until that returns false, and reports whether it has not.
func (f *follower) follow(p *published, tell func(key string, old, now told) bool) bool {
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
	for key, t := range p.turns(was, f.text) {
		if !tell(key, t.old, t.now) {
			return false
		}
	}
	return true
}

// gather lets changes come together until the interval is over or flushed is closed.
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

// awaitAny waits for one of two events, and returns false if ctx ends before.
func awaitAny(ctx context.Context, a, b <-chan struct{}) bool {
	select {
	case <-a:
	case <-b:
	case <-ctx.Done():
		return false
	}
	return true
}

// news wakes any number of goroutines that wait for the next event. An event that nobody waits for costs one load.
type news struct{ waited atomic.Pointer[chan struct{}] }

// next returns what the next event closes.
func (n *news) next() <-chan struct{} {
	for {
		if c := n.waited.Load(); c != nil {
			return *c
		}
		n.waited.CompareAndSwap(nil, new(make(chan struct{})))
	}
}

// tell is the event.
func (n *news) tell() {
	if n.waited.Load() == nil {
		return
	}
	if c := n.waited.Swap(nil); c != nil {
		close(*c)
	}
}
