package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/contain"
)

// An update of a volatile key at Local is a function call on the goroutine of its caller [R12]: it
// takes the lock of the core, runs the function on the working copy of the open events, takes the
// next event number, and has the value. The actor commits all open events together, at most
// commitPause later. Until then readers of this member see them here, beside the published state,
// and nothing of them leaves the replica.
//
// A message with such an update is carried out in the same way, on the goroutine of the actor. What
// the front cannot do is a request to the actor, as all other operations are: it is then a step of
// the core, which commits the open events before or with it.

// commitPause is the shortest time between two commits of open events.
const commitPause = 200 * time.Microsecond

// front is the volatile domain as callers see it. It belongs to one incarnation.
type front struct {
	l      *binding
	lock   coreLock               // held during a step, and during an update
	core   *core.Core             // nil: updates are requests to the actor. Guarded by lock
	shut   bool                   // it stays nil. Guarded by lock
	runs   atomic.Pointer[string] // the key whose update holds the lock on its caller's goroutine
	queued atomic.Int64           // messages with updates that the actor has not handled

	some atomic.Bool // there are open entries
	full atomic.Bool // the actor has the lock next, and must push; see core.Core.Full
	mu   struct {
		sync.Mutex // held for moments only: readers take it
		entries    map[string]*openEntry
		created    int // number of them that did not exist before the open events
		seen       causal.Vector
		whole      *replicatorView // the published state with the open entries; nil: to be made
		of         *replicatorView // what whole was made of
		at         time.Time       // when entries was last committed
	}
}

// openEntry is an entry that open events have changed.
type openEntry struct {
	held   history.Held
	seen   causal.Vector
	number uint64 // like domainView.number
}

func newFront(l *binding) *front {
	f := &front{l: l, lock: newCoreLock()}
	f.mu.entries = map[string]*openEntry{}
	return f
}

// commitOpen makes the actor commit the open events.
type commitOpen struct{}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*commitOpen) IgnoreDeadLetterLogging() {}

// errStep says that an update must be a request to the actor.
var errStep = core.ErrStep

// enter takes the lock for the caller of an update of key, which is the actor itself if actor is
// set. It returns errStep if the update must be a request to the actor. With another error nothing
// has been done.
func (f *front) enter(ctx context.Context, key string, actor bool) error {
	if actor {
		f.lock.lock()
	} else if err := f.take(ctx); err != nil {
		return err
	}
	if f.core == nil || !actor && f.l.state.Load() != running {
		f.lock.unlock()
		return errStep
	}
	f.runs.Store(&key)
	return nil
}

// take takes the lock for a caller.
func (f *front) take(ctx context.Context) error {
	if f.l.r.userCall.Load() != nil { // the actor may be the caller
		if err := f.l.r.reentrant(); err != nil {
			return err
		}
	}
	if f.queued.Load() > 0 { // an earlier message of the caller may be among them
		return errStep
	}
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
	if f.lock.try() {
		return nil
	}
	return f.wait(ctx)
}

// sent records that a message is about to be put into the mailbox, and handled that the actor has
// handled one. A direct update of the same goroutine must not overtake an update that it has sent.
func (f *front) sent(message any) {
	if _, m, _ := actor.UnwrapEnvelope(message); changesData(m) {
		f.queued.Add(1)
	}
}

func (f *front) handled(message any) {
	if changesData(message) && f.queued.Load() > 0 {
		f.queued.Add(-1)
	}
}

// changesData reports whether a message is a request that changes data.
func changesData(message any) bool {
	if _, ok := message.(interface{ changesData() }); ok {
		return true
	}
	if reflect.TypeOf(message) == nil || reflect.TypeOf(message).Kind() != reflect.Struct {
		return false
	}
	req, ok := asRequest(message) // sent by value
	return ok && outlives(req)
}

// leave gives the lock back.
func (f *front) leave() {
	f.runs.Store(nil)
	f.lock.unlock()
}

// reentrantAfter is how long an update waits for the lock before it finds out whether the function
// that occupies the replicator is its own caller.
const reentrantAfter = 10 * time.Millisecond

// wait waits for the lock until ctx is done.
func (f *front) wait(ctx context.Context) error {
	soon := f.l.timers.get(reentrantAfter)
	got := f.lock.wait(ctx.Done(), f.l.ended.Done(), soon.C)
	f.l.timers.put(soon)
	if got {
		return nil
	}
	if err := f.l.r.reentrant(); err != nil {
		return err
	}
	f.l.r.blocked() // from now on
	var late <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		t := f.l.timers.get(f.l.cfg.OperationTimeout)
		defer f.l.timers.put(t)
		late = t.C
	}
	switch {
	case f.lock.wait(ctx.Done(), f.l.ended.Done(), late):
		return nil
	case f.l.over():
		return errStep
	}
	return fmt.Errorf("%w: %w", ErrUnknown,
		f.l.r.busy(cmp.Or(context.Cause(ctx), context.DeadlineExceeded)))
}

// update makes an update of key, whose caller holds the lock. tell reports whether the actor must
// be told, after the lock has been given back. A panic of this library has changed nothing.
func (f *front) update(key string, modify func(*history.Txn) error) (tell bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			bugs.Report(f.l.system, "replicator "+f.l.cfg.Name, "updating at Local", p,
				&f.l.r.panics)
			err = errBroken
		}
	}()
	o, err := f.core.Direct(f.l.ttls.clock.Now(), key, modify)
	if err != nil || !o.Changed {
		return false, err
	}
	if f.core.Full() {
		f.full.Store(true)
		f.lock.reserve()
		tell = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	existed := !o.Before.Empty()
	if was, ok := f.mu.entries[key]; ok {
		existed = !was.held.Empty()
	}
	switch exists := !o.After.Empty(); {
	case exists && !existed:
		f.mu.created++
	case existed && !exists:
		f.mu.created--
	}
	f.mu.entries[key] = &openEntry{o.After, o.Seen, states.Add(1)}
	f.mu.seen, f.mu.whole = o.Seen, nil
	return !f.some.Swap(true) || tell, nil
}

// tell tells the actor that there are open events.
func (f *front) tell() { contain.Send(f.l.system, f.l.pid, new(commitOpen)) }

// entry returns an open entry, which is immutable; nil if it is not open.
func (f *front) entry(key string) *openEntry {
	if f == nil || !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.entries[key]
}

// state returns the published state with the open entries: a state of one instant.
func (f *front) state() *replicatorView {
	if !f.some.Load() {
		return f.l.published.Load()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	base := f.l.published.Load()
	if len(f.mu.entries) == 0 {
		return base
	}
	if f.mu.whole != nil && f.mu.of == base {
		return f.mu.whole
	}
	next := *base
	next.keys = base.keys.With(f.contents())
	next.seen, next.number = f.mu.seen, states.Add(1)
	next.stats.Events += f.mu.seen.Get(next.replica) - base.seen.Get(next.replica)
	f.mu.whole, f.mu.of = &next, base
	return &next
}

// contents yields the open entries.
func (f *front) contents() iter.Seq2[string, history.Held] {
	return func(yield func(string, history.Held) bool) {
		for key, o := range f.mu.entries {
			if !yield(key, o.held) {
				return
			}
		}
	}
}

// count returns the number of entries, the open ones included.
func (l *binding) count() (n int) {
	p := l.published.Load()
	for h := range p.domainViews() {
		n += h.keys.Len()
	}
	f := l.front
	if !f.some.Load() {
		return n
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return n + f.mu.created
}

// keptEntries is the largest number of open entries whose map is used again.
const keptEntries = 64

// committed publishes the state of the core, which contains the open events now.
func (f *front) committed(publish func(), now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	publish()
	if !f.some.Load() {
		return
	}
	if len(f.mu.entries) <= keptEntries {
		clear(f.mu.entries)
	} else {
		f.mu.entries = map[string]*openEntry{}
	}
	f.mu.created, f.mu.whole, f.mu.of, f.mu.at = 0, nil, nil, now
	f.some.Store(false)
}

// close makes updates requests to the actor.
func (f *front) close() {
	f.lock.lock()
	defer f.lock.unlock()
	f.core, f.shut = nil, true
}

// commitOpen commits the open events, now or when commitPause has passed since the last commit.
func (a *replica) commitOpen() {
	f := a.l.front
	if f.full.Swap(false) {
		a.volatile.step(core.Wake{}) // which pushes them too
		return
	}
	if !f.some.Load() || a.commits.Armed() {
		return
	}
	f.mu.Lock()
	at := f.mu.at
	f.mu.Unlock()
	wait := at.Add(commitPause).Sub(a.commits.Now())
	if a.more() {
		wait = commitPause // until then, those messages may be updates
	}
	if wait > 0 && wait <= commitPause {
		a.commits.Set(wait, nil)
	} else {
		a.volatile.settle()
	}
}
