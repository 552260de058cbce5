package history

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
)

// History is what a replica knows: the atoms of each key, the vector of the events that they stand
// for, the log of what these events did, and its own events that are not committed yet. It also
// knows which of its own events another replica has. It knows no member and no level.
//
// Only its transitions change it. Each transition computes the next state from immutable values and
// installs it at its end, so an interrupted transition changes nothing.
type History struct {
	me    causal.Replica     // origin of the events that Commit makes
	seen  causal.Vector      // all applied events; seen[me] is the own sequence
	keys  Keys               // the atoms, by key: a dot store whose context is seen
	sum   Sum                // fingerprint of keys
	marks pmap.Map[struct{}] // the keys that hold counter marks
	log   eventLog           // the events without payloads, for answers

	open   openEvents    // own events that are not committed yet
	clock  uint64        // hybrid logical clock, for registers
	last   causal.Vector // the newest own event and everything that it follows
	hashes hashes        // of the events of all origins, as far as they are known
	past   past          // the earlier incarnations of this process
	copied uint64        // own events up to this one are known to be at another replica
	kept   uint64        // own events after this one changed rebuilt keys alone
	lasts  bool          // an event has changed a key that is not rebuilt
	scrub  scrub

	batch   batch              // used by the transition in progress
	touched []string           // reused buffer for the keys of a change
	puts    []keyPut           // reused buffer for the puts of a draft
	made    []Event            // reused buffer for the events of a commit
	trap    func(place string) // test hook, called in the middle of transitions
}

// Change describes what a transition did. It is valid until the next one.
type Change struct {
	Keys    []string // keys whose values may differ; may contain duplicates
	Own     int      // number of events of this replica added
	Applied int      // number of events of other replicas added
	Skipped bool     // the vector rose by a state, whose events are not in the log
}

// New returns the history of a replica that has seen nothing. trap may be nil.
func New(me causal.Replica, trap func(place string)) History {
	return History{me: me, log: newEventLog(), hashes: newHashes(),
		batch: batch{stores: map[string]causal.Store{}}, trap: trap}
}

// Reach calls the test hook with the current place in the step.
func (h *History) Reach(place string) {
	if h.trap != nil {
		h.trap(place)
	}
}

// Replica returns the id of the replica.
func (h *History) Replica() causal.Replica { return h.me }

// Seen returns the vector of the events that the state contains.
func (h *History) Seen() causal.Vector { return h.seen }

// Keys returns the atoms of each key. Some keys may hold only marks.
func (h *History) Keys() Keys { return h.keys }

// Sum returns the fingerprint of the state.
func (h *History) Sum() Sum { return h.sum }

// State returns the state of this moment.
func (h *History) State() State { return State{h.keys, h.seen, h.sum} }

// Own returns the number of own events.
func (h *History) Own() uint64 { return h.seen.Get(h.me) }

// EndsOwn reports whether this replica has seen exactly its newest own event and what that follows.
func (h *History) EndsOwn() bool { return h.seen.Equal(h.last) }

// LogBytes returns the estimated size of the log.
func (h *History) LogBytes() int { return h.log.size }

// commit turns the working copy into the newest own events, up to what after covers, and installs
// them. If after is empty, the work is one event, unless it has no net effect: then it makes no
// event and uses no number.
func (h *History) commit(work []*working, after causal.Vector) Change {
	from := h.seen.Get(h.me)
	last := causal.Dot{Replica: h.me, N: max(after.Get(h.me), from+1)}
	events := append(h.made[:0], make([]Event, last.N-from)...)
	for i := range events {
		events[i].Dot = causal.Dot{Replica: h.me, N: from + 1 + uint64(i)}
	}
	d := h.draft(len(work))
	some := false
	for _, w := range work {
		k := w.keyChange(from, last)
		if k.Empty() {
			continue
		}
		some = true
		spread(events, k, len(work), h.seen)
		d.put(w.key, w.next)
	}
	switch {
	case after.Len() > 0:
	case some:
		after = h.seen.With(last)
	default:
		return Change{}
	}
	for _, e := range events {
		h.log.add(e)
	}
	ch := h.install(d, after)
	ch.Own = len(events)
	if clear(events); cap(events) <= maxRoom {
		h.made = events[:0]
	}
	return ch
}

// spread divides the change of a key by own events among these events: an atom belongs to the event
// that added it, and so does the removal of one that it replaces. The last event has the rest.
func spread(events []Event, k KeyChange, keys int, seen causal.Vector) {
	first, last := events[0].Dot.N, len(events)-1
	of := func(a causal.Atom) int { return int(a.N - first) }
	put := func(i int, k KeyChange) {
		e := &events[i]
		if e.Keys == nil && last == 0 { // one of many events has few of the keys
			e.Keys = make([]KeyChange, 0, keys)
		}
		if k.Clear {
			e.Deps = seen
		}
		e.Keys = append(e.Keys, k)
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
	at := func(i int) *KeyChange { // of the key, in that event
		e := &events[i]
		if n := len(e.Keys); n == 0 || e.Keys[n-1].Key != k.Key {
			put(i, KeyChange{Key: k.Key})
		}
		return &e.Keys[len(e.Keys)-1]
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
			events[last].Deps = seen
		}
	}
}

// Apply applies a delta whose base is covered. It skips events that are covered already: their
// removals have been done, and their additions have been made or removed since.
func (h *History) Apply(d *Delta) Change {
	h.batch.reset()
	fresh := d.beyond(h.seen)
	for _, e := range fresh {
		h.batch.apply(e, h.keys, h.seen)
	}
	next := h.draft(len(h.batch.order))
	next.putAll(&h.batch)
	for _, e := range fresh {
		h.log.add(e.Event)
	}
	ch := h.install(next, h.seen.Join(d.Head))
	ch.Applied = len(fresh)
	return ch
}

// Join merges a whole state [R19]. An atom that one side holds, and the other has seen but does not
// hold, was removed.
func (h *History) Join(s State) Change {
	d := h.draft(0)
	if h.keys.Len() == 0 && h.seen.Meet(s.Seen).Len() == 0 {
		d.take(s)
	} else {
		h.keys.Diff(s.Keys, func(key string, a, b Held) {
			if a.Blank() && !b.seenBy(h.seen) {
				d.set(key, a, b)
			} else if both := causal.Join(a.Store, h.seen, b.Store, s.Seen); !both.Same(a.Store) {
				d.set(key, a, held(key, both, a))
			}
		})
	}
	return h.rise(d, s.Seen)
}

// Replace replaces this replica's state, which is damaged, with the state of another one. It then
// reapplies the events that this replica has seen and the other has not [R27]. It returns false,
// and changes nothing, if the log does not reach back far enough.
func (h *History) Replace(s State) (Change, bool) {
	since, ok := h.Since(s.Seen)
	if !ok {
		return Change{}, false
	}
	for i, e := range since.Events {
		since.Events[i] = h.Fill(e.Event)
	}
	d := h.draft(0)
	h.keys.Diff(s.Keys, func(key string, a, b Held) {
		next := b.Store
		for path, m := range a.Marks() {
			next = next.WithMark(path, m)
		}
		d.set(causal.Clone(key), a, Held{next, b.sum, b.bytes})
	})
	d.flush()
	h.batch.reset()
	for _, e := range since.Events {
		h.batch.apply(e, d.keys, s.Seen)
	}
	d.putAll(&h.batch)
	return h.rise(d, s.Seen), true
}

// DropMarks drops the marks for which void returns true, which are no longer needed.
func (h *History) DropMarks(void func(s causal.Store, path string, m causal.Mark) bool) Change {
	d := h.draft(0)
	for key := range h.marks.All() {
		held, _ := h.keys.Get(key)
		next := held.Store
		for path, m := range held.Marks() {
			if void(held.Store, path, m) {
				next = next.WithoutMark(path)
			}
		}
		if !next.SameMarks(held.Store) {
			d.put(causal.Clone(key), next)
		}
	}
	return h.install(d, h.seen)
}

// Trim cuts the log: first what stable covers, and then, while the log exceeds the budget, the
// older half of the largest part [R17]. Events that keep protects stay. Origins that are gone and
// have no events left in the log are dropped from it. Trim returns the number of events cut beyond
// what stable covers.
func (h *History) Trim(stable causal.Vector, keep []causal.Vector, gone func(causal.Replica) bool,
	budget int) (cut uint64) {
	for r := range h.log.origins {
		d := causal.Dot{Replica: r, N: stable.Get(r)}
		h.log.cut(r, limit(keep, d))
	}
	h.log.retire(gone)
	h.hashes.retire(gone)
	for h.log.size > budget {
		d, ok := h.log.largest()
		if !ok {
			break
		}
		n := h.log.cut(d.Replica, limit(keep, d))
		if n == 0 {
			break
		}
		cut += n
	}
	return cut
}

// limit returns the event up to which the log of d's replica may be cut, at most to d: answers that
// are under way continue from the vectors in keep.
func limit(keep []causal.Vector, d causal.Dot) uint64 {
	n := d.N
	for _, v := range keep {
		n = min(n, v.Get(d.Replica))
	}
	return n
}

// Events returns the events of r from n on, without payloads, or false if the log does not have all
// of them. The slice is valid until the next transition.
func (h *History) Events(r causal.Replica, n uint64) ([]Event, bool) { return h.log.from(r, n) }

// correct fixes a key's fingerprint that was found to be wrong.
func (h *History) correct(key string, by Sum) {
	if was, ok := h.keys.Get(key); ok {
		h.sum = h.sum.Plus(by)
		h.keys = h.keys.put(key, Held{was.Store, was.sum.Plus(by), was.bytes})
	}
}

// rise installs a draft into which a state with the vector seen was joined. The vector covers the
// new events, but the log does not contain them.
func (h *History) rise(d draft, seen causal.Vector) Change {
	h.log.skip(seen, h.seen)
	ch := h.install(d, h.seen.Join(seen))
	ch.Skipped = true
	return ch
}

// install completes a transition.
func (h *History) install(d draft, seen causal.Vector) Change {
	d.flush()
	h.Reach("before install")
	h.keys, h.sum, h.marks, h.seen = d.keys, d.sum, d.marks, seen
	h.lasts = h.lasts || slices.ContainsFunc(d.touched, lasting)
	if h.touched = d.touched; cap(h.touched) > maxRoom {
		h.touched = nil
	}
	if h.puts = d.puts; cap(h.puts) > maxRoom {
		h.puts = nil
	}
	h.batch.reset()
	h.Reach("after install")
	return Change{Keys: d.touched}
}

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
func (h *History) draft(keys int) draft {
	return draft{
		keys: h.keys, puts: slices.Grow(h.puts[:0], keys), sum: h.sum, marks: h.marks,
		touched: slices.Grow(h.touched[:0], keys),
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
	d.sum = d.sum.Minus(old.sum).Plus(h.sum)
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
	d.keys, d.sum = s.Keys, s.Sum
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
