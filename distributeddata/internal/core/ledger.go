package core

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
)

// ledger is the state of a replica: the atoms of each key, the vector of the events that they stand
// for, and the log of what these events did. Only the transitions in this file change it. Each
// transition computes the next state from immutable values and installs it at its end, so an
// interrupted transition changes nothing.
type ledger struct {
	me    causal.Replica     // origin of the events that commit makes
	seen  causal.Vector      // all applied events; seen[me] is the own sequence
	keys  Keys               // the atoms, by key: a dot store whose context is seen
	sum   Sum                // fingerprint of keys
	marks pmap.Map[struct{}] // the keys that hold counter marks
	log   eventLog           // the events without payloads, for answers

	batch   batch              // used by the transition in progress
	touched []string           // reused buffer for the keys of a change
	puts    []keyPut           // reused buffer for the puts of a draft
	made    []event            // reused buffer for the events of a commit
	trap    func(place string) // test hook, called in the middle of transitions
}

// change describes what a transition did. It is valid until the next one.
type change struct {
	keys    []string // keys whose values may differ; may contain duplicates
	own     int      // number of events of this replica added
	applied int      // number of events of other replicas added
	skipped bool     // the vector rose by a state, whose events are not in the log
}

func newLedger(me causal.Replica, trap func(string)) ledger {
	return ledger{me: me, log: newEventLog(), batch: batch{stores: map[string]causal.Store{}},
		trap: trap}
}

// reach calls the test hook with the current place in the step.
func (l *ledger) reach(place string) {
	if l.trap != nil {
		l.trap(place)
	}
}

func (l *ledger) state() State { return State{l.keys, l.seen, l.sum} }

// commit turns the working copy into the newest own events, up to what after covers, and installs
// them. If after is empty, the work is one event, unless it has no net effect: then it makes no
// event and uses no number.
func (l *ledger) commit(work []*working, after causal.Vector) change {
	from := l.seen.Get(l.me)
	last := causal.Dot{Replica: l.me, N: max(after.Get(l.me), from+1)}
	events := append(l.made[:0], make([]event, last.N-from)...)
	for i := range events {
		events[i].dot = causal.Dot{Replica: l.me, N: from + 1 + uint64(i)}
	}
	d := l.draft(len(work))
	some := false
	for _, w := range work {
		k := w.keyChange(from, last)
		if k.Empty() {
			continue
		}
		some = true
		spread(events, k, len(work), l.seen)
		d.put(w.key, w.next)
	}
	switch {
	case after.Len() > 0:
	case some:
		after = l.seen.With(last)
	default:
		return change{}
	}
	for _, e := range events {
		l.log.add(e)
	}
	ch := l.install(d, after)
	ch.own = len(events)
	if clear(events); cap(events) <= maxRoom {
		l.made = events[:0]
	}
	return ch
}

// spread divides the change of a key by own events among these events: an atom belongs to the event
// that added it, and so does the removal of one that it replaces. The last event has the rest.
func spread(events []event, k keyChange, keys int, seen causal.Vector) {
	first, last := events[0].dot.N, len(events)-1
	of := func(a causal.Atom) int { return int(a.N - first) }
	put := func(i int, k keyChange) {
		e := &events[i]
		if e.keys == nil && last == 0 { // one of many events has few of the keys
			e.keys = make([]keyChange, 0, keys)
		}
		if k.Clear {
			e.deps = seen
		}
		e.keys = append(e.keys, k)
	}
	same := true
	for _, a := range k.Adds {
		same = same && a.N == k.Adds[0].N
	}
	switch {
	case len(k.Adds) == 0:
		put(last, k)
		return
	case same:
		put(of(k.Adds[0]), k)
		return
	}
	at := func(i int) *keyChange { // of the key, in that event
		e := &events[i]
		if n := len(e.keys); n == 0 || e.keys[n-1].key != k.key {
			put(i, keyChange{key: k.key})
		}
		return &e.keys[len(e.keys)-1]
	}
	added := make(map[string]int, len(k.Adds))
	for _, a := range k.Adds {
		added[a.Path] = of(a)
		to := at(of(a))
		to.Adds = append(to.Adds, a)
	}
	for _, a := range k.Removes {
		i, ok := added[a.Path]
		if !ok {
			i = last
		}
		to := at(i)
		to.Removes = append(to.Removes, a)
	}
	if k.Clear || len(k.Marks) > 0 {
		to := at(last)
		if to.Clear, to.Marks = k.Clear, k.Marks; k.Clear {
			events[last].deps = seen
		}
	}
}

// apply applies a delta whose base is covered. It skips events that are covered already: their
// removals have been done, and their additions have been made or removed since.
func (l *ledger) apply(d *delta) change {
	l.batch.reset()
	fresh := d.beyond(l.seen)
	for _, e := range fresh {
		l.batch.apply(e, l.keys, l.seen)
	}
	next := l.draft(len(l.batch.order))
	next.putAll(&l.batch)
	for _, e := range fresh {
		l.log.add(e.event)
	}
	ch := l.install(next, l.seen.Join(d.head))
	ch.applied = len(fresh)
	return ch
}

// join merges a whole state [R19]. An atom that one side holds, and the other has seen but does not
// hold, was removed.
func (l *ledger) join(s State) change {
	d := l.draft(0)
	if l.keys.Len() == 0 && l.seen.Meet(s.Seen).Len() == 0 {
		d.take(s)
	} else {
		l.keys.diff(s.Keys, func(key string, a, b Held) {
			if a.Blank() && !b.seenBy(l.seen) {
				d.set(key, a, b)
			} else if both := causal.Join(a.Store, l.seen, b.Store, s.Seen); !both.Same(a.Store) {
				d.set(key, a, held(key, both, a))
			}
		})
	}
	return l.rise(d, s.Seen)
}

// replace replaces this replica's state, which is damaged, with the state of another one. It then
// reapplies the events that this replica has seen and the other has not [R27]. It returns false,
// and changes nothing, if the log does not reach back far enough.
func (l *ledger) replace(s State) (change, bool) {
	since, ok := l.makeDelta(s.Seen)
	if !ok {
		return change{}, false
	}
	for i, e := range since.events {
		since.events[i] = l.fill(e.event)
	}
	d := l.draft(0)
	l.keys.diff(s.Keys, func(key string, a, b Held) {
		next := b.Store
		for path, m := range a.Marks() {
			next = next.WithMark(path, m)
		}
		d.set(causal.Clone(key), a, Held{next, b.sum, b.bytes})
	})
	d.flush()
	l.batch.reset()
	for _, e := range since.events {
		l.batch.apply(e, d.keys, s.Seen)
	}
	d.putAll(&l.batch)
	return l.rise(d, s.Seen), true
}

// dropMarks drops the marks for which void returns true, which are no longer needed.
func (l *ledger) dropMarks(void func(s causal.Store, path string, m causal.Mark) bool) change {
	d := l.draft(0)
	for key := range l.marks.All() {
		h, _ := l.keys.Get(key)
		next := h.Store
		for path, m := range h.Marks() {
			if void(h.Store, path, m) {
				next = next.WithoutMark(path)
			}
		}
		if !next.SameMarks(h.Store) {
			d.put(causal.Clone(key), next)
		}
	}
	return l.install(d, l.seen)
}

// trim cuts the log: first what stable covers, and then, while the log exceeds the budget, the
// older half of the largest part [R17]. Events that keep protects stay. Origins that are gone and
// have no events left in the log are dropped from it. trim returns the number of events cut beyond
// what stable covers.
func (l *ledger) trim(stable causal.Vector, keep pins, gone func(causal.Replica) bool,
	budget int) (cut uint64) {
	for r := range l.log.origins {
		d := causal.Dot{Replica: r, N: stable.Get(r)}
		l.log.cut(r, keep.limit(d))
	}
	l.log.retire(gone)
	for l.log.size > budget {
		d, ok := l.log.largest()
		if !ok {
			break
		}
		n := l.log.cut(d.Replica, keep.limit(d))
		if n == 0 {
			break
		}
		cut += n
	}
	return cut
}

// correct fixes a key's fingerprint that was found to be wrong.
func (l *ledger) correct(key string, by Sum) {
	if h, ok := l.keys.Get(key); ok {
		l.sum = l.sum.plus(by)
		l.keys = l.keys.put(key, Held{h.Store, h.sum.plus(by), h.bytes})
	}
}

// takeOver takes the state of o, under this ledger's own id. o must not be used afterwards.
func (l *ledger) takeOver(o ledger) {
	l.keys, l.seen, l.sum, l.log, l.marks = o.keys, o.seen, o.sum, o.log, o.marks
}

// rise installs a draft into which a state with the vector seen was joined. The vector covers the
// new events, but the log does not contain them.
func (l *ledger) rise(d draft, seen causal.Vector) change {
	l.log.skip(seen, l.seen)
	ch := l.install(d, l.seen.Join(seen))
	ch.skipped = true
	return ch
}

// install completes a transition.
func (l *ledger) install(d draft, seen causal.Vector) change {
	d.flush()
	l.reach("before install")
	l.keys, l.sum, l.marks, l.seen = d.keys, d.sum, d.marks, seen
	if l.touched = d.touched; cap(l.touched) > maxRoom {
		l.touched = nil
	}
	if l.puts = d.puts; cap(l.puts) > maxRoom {
		l.puts = nil
	}
	l.batch.reset()
	l.reach("after install")
	return change{keys: d.touched}
}

// restore makes the log consistent with the installed state, after an interrupted transition.
func (l *ledger) restore() { l.log.fit(l.seen) }

// maxRoom is the largest number of keys for which the buffers of a change are kept.
const maxRoom = 4096

// draft is the state that a transition is about to install.
type draft struct {
	keys    Keys     // puts are not included
	puts    []keyPut // of distinct keys
	sum     Sum
	marks   pmap.Map[struct{}]
	touched []string
}

// draft returns a draft that changes about the given number of keys.
func (l *ledger) draft(keys int) draft {
	return draft{
		keys: l.keys, puts: slices.Grow(l.puts[:0], keys), sum: l.sum, marks: l.marks,
		touched: slices.Grow(l.touched[:0], keys),
	}
}

// flush applies the gathered puts to keys.
func (d *draft) flush() {
	d.keys = d.keys.putAll(d.puts)
	clear(d.puts)
	d.puts = d.puts[:0]
}

// put sets the store of a key to a modified version of the current one.
func (d *draft) put(key string, s causal.Store) {
	old, _ := d.keys.Get(key)
	if !s.Same(old.Store) {
		d.set(key, old, held(key, s, old))
	}
}

// set replaces old, the content of a key, with h.
func (d *draft) set(key string, old, h Held) {
	if h.Blank() {
		d.keys = d.keys.delete(key)
	} else {
		d.puts = append(d.puts, keyPut{Key: key, Value: &h})
	}
	d.sum = d.sum.minus(old.sum).plus(h.sum)
	switch has := h.HasMarks(); {
	case has == old.HasMarks():
	case has:
		d.marks = d.marks.Put(key, struct{}{})
	default:
		d.marks = d.marks.Delete(key)
	}
	if !h.SameValue(old.Store) {
		d.touched = append(d.touched, key)
	}
}

// putAll puts the stores that a batch has gathered.
func (d *draft) putAll(b *batch) {
	for _, key := range b.order {
		d.put(key, b.stores[key])
	}
}

// take makes s the state of a replica that held nothing.
func (d *draft) take(s State) {
	d.keys, d.sum = s.Keys, s.sum
	for key, h := range s.Keys.All() {
		key = causal.Clone(key)
		if h.HasMarks() {
			d.marks = d.marks.Put(key, struct{}{})
		}
		d.touched = append(d.touched, key)
	}
}

// batch gathers the effects of events on keys, so that each key is installed once, however many
// events change it.
type batch struct {
	stores map[string]causal.Store
	order  []string
}

func (b *batch) reset() {
	clear(b.stores)
	clear(b.order)
	b.order = b.order[:0]
}

// seenBy reports whether v covers any of the atoms.
func (h Held) seenBy(v causal.Vector) bool {
	if v.Len() == 0 {
		return false
	}
	for _, e := range h.Prefix("") {
		for l := range e.All() {
			if v.Covers(l.Dot) {
				return true
			}
		}
	}
	return false
}
