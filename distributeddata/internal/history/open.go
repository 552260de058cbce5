package history

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
	ahead    struct {            // see seenUpTo
		n    uint64
		seen causal.Vector
	}
	spare  *working // replaced in keys; used again
	direct Txn      // of Direct; used again
}

// keptOpen is the largest number of open keys whose map is used again: clearing a map takes time
// for its largest size.
const keptOpen = 64

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
		size += KeyChange{Key: w.key, Change: w.change}.size()
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

// committed says that no event is open any more.
func (o *openEvents) committed() {
	if len(o.keys) <= keptOpen {
		clear(o.keys)
	} else {
		o.keys = nil
	}
	o.taken, o.using, o.hidden, o.promised, o.spare = 0, false, false, false, nil
}

// Gathers reports whether events are open. If so, the last step changed nothing that readers see.
func (h *History) Gathers() bool { return len(h.open.keys) > 0 }

// Hidden reports whether a step has made some of the open events.
func (h *History) Hidden() bool { return h.open.hidden }

// Promised reports whether an update has been answered whose event is open.
func (h *History) Promised() bool { return h.open.promised }

// Open returns the number of open events.
func (h *History) Open() uint64 { return h.open.events() }

// Update makes the changes of modify part of the open events [R5]. It returns their estimated size.
// After an error, or if modify does not return, nothing has changed.
func (h *History) Update(now time.Time, fits Fits, modify func(*Txn) error) (size int, err error) {
	t := new(Txn)
	h.begin(t, now, fits)
	if err := t.run(modify); err != nil {
		return 0, err
	}
	size = h.merge(t)
	h.open.hidden = h.Gathers()
	return size, nil
}

// Take gives the open changes that have no number yet an event of their own, and returns its
// number; it returns 0 if there are none. No later update changes that event.
func (h *History) Take() (n uint64) {
	if o := &h.open; o.using {
		o.taken, o.using, n = o.taken+1, false, o.last.N
	}
	return n
}

// Opened is an entry after an update by Direct.
type Opened struct {
	Before causal.Store  // before the open events
	After  Held          // after the update
	Seen   causal.Vector // what this replica will have seen after it
	// Changed says that the update has changed something.
	Changed bool
}

// Direct is an update that takes an event number of its own, so that its caller can be answered and
// others can read it at once: the value covers exactly the events up to that number. Everything
// that may fail comes before the first change. The result is about key.
func (h *History) Direct(now time.Time, fits Fits, key string, modify func(*Txn) error) (o Opened,
	size int, err error) {
	t := &h.open.direct
	h.begin(t, now, fits)
	defer func() { *t = Txn{} }()
	if err = t.run(modify); err != nil {
		return o, 0, err
	}
	for _, w := range t.work {
		// What the open event replaces of its own is no change to others.
		o.Changed = o.Changed || w.cleared || !w.change.Empty() || !w.next.Same(w.was)
		if w.key == key {
			o.Before, o.After = w.before, Held{Store: w.next, bytes: w.bytes}
		}
	}
	if !o.Changed {
		return o, 0, nil
	}
	o.Seen = t.After(true)
	h.Reach("before merge")
	size = h.merge(t)
	h.open.taken, h.open.using, h.open.promised = h.open.taken+1, false, true
	return o, size, nil
}

// begin makes t the working copy of the next update.
func (h *History) begin(t *Txn, now time.Time, fits Fits) {
	h.clock = max(h.clock+1, uint64(max(now.UnixMilli(), 0))<<16)
	*t = Txn{open: &h.open, keys: h.keys, fits: fits, dot: h.open.begin(h.me, h.seen),
		stamp: h.clock}
}

// merge makes an update's work part of the open event.
func (h *History) merge(t *Txn) (size int) {
	size = h.open.merge(t.work)
	h.open.last = t.dot
	return size
}

// Commit makes the open events the newest own ones, and their working copy the state. An event
// without a net effect uses no number, unless an answered update has taken it.
//
// Updates without a waiter share an event, up to the next input of another kind, so the states
// between them are never visible. Atoms of one event have one dot, and the meaning of a dot must
// never change. The updates cost other members only their net effect: a counter raised a hundred
// times is one atom.
func (h *History) Commit() Change {
	if !h.Gathers() {
		return Change{}
	}
	for key := range h.open.keys {
		if lasting(key) {
			h.kept = h.Own() + h.open.events()
			break
		}
	}
	before, from := h.seen, h.Own()
	ch := h.commit(h.open.work())
	if ch.Own > 0 {
		h.hashes.own.add(from+1, h.Own(), h.sum, before, h.clock)
		h.last = h.seen
	}
	h.open.committed()
	return ch
}

// Reopen prepares the open events for another Commit, after a panic. It copies what a Commit
// changes. Events that have been installed already are not open any more.
func (h *History) Reopen() {
	h.log.fit(h.seen)
	o := &h.open
	o.keys, o.spare = maps.Clone(o.keys), nil
	if h.seen.Covers(o.last) {
		o.keys = nil
		o.committed()
	}
}

// DropOpen drops the open events, which cannot be committed.
func (h *History) DropOpen() {
	h.log.fit(h.seen)
	h.open = openEvents{}
}

// keyChange returns the effect on the key of the events after from up to the event last.
func (w *working) keyChange(from uint64, last causal.Dot) KeyChange {
	k := KeyChange{Key: w.key, Change: w.change}
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
