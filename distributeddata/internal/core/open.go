package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// Own events are open until end commits them. An open event may still grow, and nothing of it is
// visible: neither to readers, nor to other members, nor to the disk, and no caller has its answer.
//
// Updates without a waiter share the event with the next number. An update with a waiter takes that
// number: the value that it returns says that this replica has seen the event, so the number must
// not name another one. If another update follows at once, the event stays open with those after
// it [R11]. The events are committed together, as if the values between them had never been:
// the log has their net effect, and each atom with the event that added it. An event of which
// nothing is left is empty. The keys, the vector and the fingerprint are thus changed once, however
// many updates share them.

// openEvents are the own events that are not committed yet.
type openEvents struct {
	keys     map[string]*working // their changes
	base     causal.Vector       // what this replica had seen before them
	from     causal.Dot          // the own event before them
	last     causal.Dot          // the last of them
	taken    uint64              // number of them that answered updates have taken
	using    bool                // an update without a waiter has changed something in the next one
	hidden   bool                // a step has made some of them, which readers must not see yet
	promised bool                // a caller has its answer
	callers  []unanswered        // of those that wait for the commit
	since    time.Time           // when the first of these called
	ahead    struct {            // see seenUpTo
		n    uint64
		seen causal.Vector
	}
	spare  *working // replaced in keys; used again
	direct Txn      // of Direct; used again
}

// unanswered is an update whose caller is answered when its event has been committed.
type unanswered struct {
	id       uint64
	n        uint64 // the number of its event; 0 if it changed nothing
	level    Level
	deadline time.Time
	err      error // why the update was rejected
}

// maxUnanswered bounds the answers that wait for one commit.
const maxUnanswered = 256

// openPause is the longest time for which an answer waits for other updates.
const openPause = time.Millisecond

// maxOpen bounds the open events that Direct makes. keptOpen is the largest number of open keys
// whose map is used again: clearing a map takes time for its largest size.
const maxOpen, keptOpen = 4096, 64

// begin returns the dot of the event that the next update is, or is a part of. The replica has seen
// the base; that does not change while events are open.
func (o *openEvents) begin(me causal.Replica, seen causal.Vector) causal.Dot {
	if o.taken == 0 {
		o.base, o.ahead.n = seen, 0
		o.from = causal.Dot{Replica: me, N: seen.Get(me)}
	}
	return causal.Dot{Replica: me, N: o.from.N + o.taken + 1}
}

// seen returns what this replica will have seen before that event.
func (o *openEvents) seen() causal.Vector {
	if o.taken == 0 {
		return o.base
	}
	return o.seenUpTo(o.from.N + o.taken)
}

// seenUpTo returns what this replica will have seen after the own event n, which is open.
func (o *openEvents) seenUpTo(n uint64) causal.Vector {
	if o.ahead.n != n {
		o.ahead.n, o.ahead.seen = n, o.base.With(causal.Dot{Replica: o.from.Replica, N: n})
	}
	return o.ahead.seen
}

// events returns the number of open events.
func (o *openEvents) events() uint64 {
	switch {
	case len(o.keys) == 0:
		return 0
	case o.taken > 0 && !o.using:
		return o.taken
	}
	return o.taken + 1
}

// working returns a copy of the work on a key of the committed ones.
func (o *openEvents) working(key string, committed Keys) *working {
	if was := o.keys[key]; was != nil {
		w := o.spare
		if o.spare = nil; w == nil {
			w = &working{}
		}
		room := w.change
		*w = *was
		w.was, w.change = w.next, room
		return w
	}
	h, _ := committed.Get(key)
	return &working{key: key, before: h.Store, base: h.Store, was: h.Store, next: h.Store,
		bytes: h.bytes}
}

// merge makes an update's work part of the open event, and returns its estimated size. It computes
// everything that may fail before it changes anything.
func (o *openEvents) merge(work []*working) (size int) {
	using := o.using
	for _, w := range work {
		using = using || w.cleared || !w.change.Empty()
		size += keyChange{key: w.key, Change: w.change}.size()
		for _, a := range w.change.Adds {
			size += len(a.Payload)
		}
	}
	if o.keys == nil {
		o.keys = make(map[string]*working, len(work))
	}
	for _, w := range work {
		if was := o.keys[w.key]; was != nil {
			o.spare = was
		}
		o.keys[w.key] = w
	}
	o.using = using
	return size
}

// await adds the caller of an update, whose answer waits for the open events, and for those before
// them. It reports whether they must be committed now.
func (o *openEvents) await(now time.Time, a unanswered, more bool) (due bool) {
	if a.err == nil && o.using {
		o.taken, o.using, a.n = o.taken+1, false, o.last.N
	}
	if len(o.callers) == 0 {
		o.since = now
	}
	o.callers = append(o.callers, a)
	wait := now.Sub(o.since)
	return !more || wait < 0 || wait >= openPause || len(o.callers) >= maxUnanswered
}

// work returns the work of the open events by key, and what this replica will have seen after them;
// the latter is empty if no answered update has taken one.
func (o *openEvents) work() (work []*working, after causal.Vector) {
	if o.taken > 0 {
		after = o.seenUpTo(o.from.N + o.events())
	}
	return slices.SortedFunc(maps.Values(o.keys), func(a, b *working) int {
		return strings.Compare(a.key, b.key)
	}), after
}

// committed says that no event is open any more; the callers are answered next.
func (o *openEvents) committed() {
	if len(o.keys) <= keptOpen {
		clear(o.keys)
	} else {
		o.keys = nil
	}
	o.taken, o.using, o.hidden, o.promised, o.spare = 0, false, false, false, nil
}

// Gathers reports whether events are open. If so, the last step changed nothing that readers see.
func (c *Core) Gathers() bool { return len(c.open.keys) > 0 }

// Hidden reports whether a step has made some of the open events.
func (c *Core) Hidden() bool { return c.open.hidden }

// Unanswered returns the number of callers that wait for the open events to be committed.
func (c *Core) Unanswered() int { return len(c.open.callers) }

// merge makes an update's work part of the open event.
func (c *Core) merge(t *Txn) {
	size := c.open.merge(t.work)
	c.open.last = t.dot
	c.outbox.Gather(size)
	if len(t.work) > 0 {
		c.gather(size)
	}
}

// answer answers an update that is done or was rejected, once the open events are committed.
// Without a waiter only a rejection is reported.
func (c *Core) answer(ev Update, err error) {
	switch {
	case ev.ID == 0 && err != nil:
		c.emit(Done{Err: err})
	case ev.ID == 0:
	case c.open.await(c.now, unanswered{id: ev.ID, level: ev.Level, deadline: ev.Deadline,
		err: err}, ev.More):
		c.end()
	}
}

// end commits the open events: they become the newest own events, and their working copy becomes
// the state. An event without a net effect uses no number, unless an answered update has taken it.
// Then it answers the updates with a waiter.
//
// Updates without a waiter share an event, up to the next input of another kind, so the states
// between them are never visible. Atoms of one event have one dot, and the meaning of a dot must
// never change. The updates cost other members only their net effect: a counter raised a hundred
// times is one atom.
func (c *Core) end() {
	if c.Gathers() {
		c.commitOpen()
	}
	room := c.open.callers[:0]
	for len(c.open.callers) > 0 {
		a := c.open.callers[0]
		c.open.callers[0], c.open.callers = unanswered{}, c.open.callers[1:]
		c.startWrite(a)
	}
	c.open.callers = room
}

func (c *Core) commitOpen() {
	before, from := c.seen, c.seen.Get(c.me)
	ch := c.commit(c.open.work())
	if ch.own > 0 {
		c.prints.own.add(from+1, c.seen.Get(c.me), c.sum, before, c.clock)
	}
	c.open.committed()
	c.note(ch)
}

// keyChange returns the effect on the key of the events after from up to the event last.
func (w *working) keyChange(from uint64, last causal.Dot) keyChange {
	k := keyChange{key: w.key, Change: w.change}
	if !w.was.Same(w.base) { // several updates have touched the key; all have been checked
		k.Change, _ = causal.BetweenSince(w.base, w.next, from, last, causal.Change{})
	}
	if !w.cleared {
		return k
	}
	k.Clear = true
	for path, m := range w.base.Marks() {
		if m.By.Replica == last.Replica && m.By.N > from {
			k.Marks = append(k.Marks, causal.MarkAt{Path: path, Mark: m})
		}
	}
	return k
}
