package core

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/field"
	"github.com/concord-go/concord/internal/wire"
)

// The messages that carry data are encoded and decoded by hand, in the format of
// proto/replication.proto: an update is encoded once, and a decoder's allocations are bounded by
// its input. The generated code handles the same format; a test compares them.

func appendVector(b []byte, num protowire.Number, v causal.Vector, relative bases.Base) []byte {
	name, ids, numbers := relative.List(v)
	b, at := field.Begin(b, num)
	return field.End(field.Text(field.Numbers(field.Fixeds(b, 1, ids), 2, numbers), 3, name), at)
}

// replicas is the table that indexes in a message or stream refer to: first the replicas of head,
// then others. In a push the first of the others is its origin, which is not sent.
type replicas struct {
	head   causal.Vector
	others []causal.Replica
	index  map[causal.Replica]int // of the others, if they are many
}

func replicasOf(head causal.Vector) *replicas { return &replicas{head: head} }

func (t *replicas) put(r causal.Replica) uint64 {
	if i, n := t.head.Rank(r); n > 0 {
		return uint64(i)
	}
	i, ok := t.other(r)
	if !ok {
		i = len(t.others)
		t.others = append(t.others, r)
		if t.index != nil {
			t.index[r] = i
		}
	}
	return uint64(t.head.Len() + i)
}

// fewOthers is the largest number of others that is searched linearly.
const fewOthers = 16

// other returns the index of a replica in others.
func (t *replicas) other(r causal.Replica) (i int, ok bool) {
	if t.index == nil && len(t.others) > fewOthers {
		t.index = make(map[causal.Replica]int, 2*len(t.others))
		for i, r := range t.others {
			t.index[r] = i
		}
	}
	if t.index != nil {
		i, ok = t.index[r]
		return i, ok
	}
	i = slices.Index(t.others, r)
	return i, i >= 0
}

func (t *replicas) get(i uint64) (causal.Replica, error) {
	switch n := uint64(t.head.Len()); {
	case i < n:
		return t.head.At(int(i)).Replica, nil
	case i < n+uint64(len(t.others)) && t.others[i-n] != 0:
		return t.others[i-n], nil
	}
	return 0, malformed("replica index %d of %d", i, t.head.Len()+len(t.others))
}

func (t *replicas) dot(i, n uint64) (causal.Dot, error) {
	r, err := t.get(i)
	if err == nil && n == 0 {
		err = malformed("event number 0")
	}
	return causal.Dot{Replica: r, N: n}, err
}

// encoder encodes events and keys. It reuses its buffers.
type encoder struct {
	t      *replicas
	base   bases.Base
	own    causal.Replica // of a push, whose events do not name it
	since  uint64         // of a push, which contains the own events after this one
	ev, kc []byte
	table  replicas // of a push
	events []byte   // of a push
	key    string   // of a push: the last one encoded

	replaced []int // of a key change of a push: the removals that its adds tell
}

// bookmark is the place in an event where the next piece of its encoding begins: an item of a key.
type bookmark struct{ key, item int }

// event encodes an event of the log from a place on, up to about limit bytes, and returns the place
// to continue from. Every piece names the event. Atoms that are still in the state get their
// payloads back; the others are marked gone. The result is valid until the next call.
func (w *encoder) event(e history.Event, keys history.Keys, from bookmark, limit int) (_ []byte,
	next bookmark) {
	ev := w.ev[:0]
	if w.own == 0 {
		ev = field.Number(ev, 1, w.t.put(e.Dot.Replica))
		ev = field.Number(ev, 2, e.Dot.N)
	}
	first := from == bookmark{}
	for start := len(ev); from.key < len(e.Keys) && len(ev)-start < limit; {
		k := e.Keys[from.key]
		var some bool
		from.item, some = w.keyChange(k, e.Dot, keys, from.item, limit-(len(ev)-start))
		if some || w.own == 0 {
			ev = field.Message(ev, 3, w.kc)
			w.key = k.Key
		}
		if from.item == items(k) {
			from = bookmark{key: from.key + 1}
		}
	}
	if first && e.Deps.Len() > 0 {
		ev = appendVector(ev, 4, e.Deps, w.base)
	}
	w.ev = ev
	return ev, from
}

// items returns the number of parts that a key change can be divided into.
func items(k history.KeyChange) int { return len(k.Adds) + len(k.Removes) + len(k.Marks) }

// keyChange encodes the items of a key change from an item on, up to about limit bytes, into w.kc.
// It returns the item to continue from, and whether it encoded anything. A push leaves out atoms
// that one of its events added and a later one removed, since no receiver has them [R9]. It tells
// the start of a key by that of the key before, and the removal of an atom that an add replaces by
// a number in the add [R10].
func (w *encoder) keyChange(k history.KeyChange, d causal.Dot, keys history.Keys, from,
	limit int) (_ int, some bool) {
	var at, shared int
	if w.own != 0 {
		shared = sharedStart(w.key, k.Key)
	}
	w.replaced = w.replaced[:0]
	kc := field.Text(w.kc[:0], 1, k.Key[shared:])
	var s history.Held
	if from < len(k.Adds) {
		s, _ = keys.Get(k.Key)
	}
	start := len(kc)
	more := func() bool { return len(kc)-start < limit }
	for ; from < len(k.Adds) && more(); from++ {
		a := k.Adds[from]
		e, lives := s.Get(a.Path)
		l, mine := e.Of(a.Replica)
		if lives = lives && mine && l.N == a.N; !lives && w.own != 0 {
			continue
		}
		kc, at = field.Begin(kc, 2)
		if lives {
			kc = causal.AppendAdd(kc, a.Path, l.Payload)
		} else {
			kc = field.Flag(causal.AppendAdd(kc, a.Path, ""), 3, true)
		}
		if w.own != 0 {
			kc = field.Number(kc, 4, w.instead(k.Removes, a.Path, d.N))
		}
		kc = field.End(kc, at)
	}
	for ; from >= len(k.Adds) && from < len(k.Adds)+len(k.Removes) && more(); from++ {
		a := k.Removes[from-len(k.Adds)]
		if w.own != 0 && a.Replica == w.own && a.N > w.since || w.told(from-len(k.Adds)) {
			continue
		}
		kc, at = field.Begin(kc, 3)
		kc = field.End(causal.AppendName(kc, a.Path, w.t.put(a.Replica), a.N), at)
	}
	kc = field.Flag(kc, 4, k.Clear)
	for before := len(k.Adds) + len(k.Removes); from >= before && from < items(k) &&
		more(); from++ {
		a := k.Marks[from-before]
		kc, at = field.Begin(kc, 5)
		kc = field.End(causal.AppendMark(kc, a.Path, a.Mark, w.t.put(a.By.Replica)), at)
	}
	some = len(kc) > start
	w.kc = field.Number(kc, 6, uint64(shared))
	return from, some
}

// instead returns how many events before event n of a push its origin added the atom that an add at
// the path replaces, or 0. It notes which of the removals, which are in the order of their paths,
// is told thereby.
func (w *encoder) instead(removes []causal.Atom, path string, n uint64) uint64 {
	i := 0
	if last := len(w.replaced) - 1; last >= 0 {
		i = w.replaced[last] + 1
	}
	for ; i < len(removes) && removes[i].Path <= path; i++ {
		if a := removes[i]; a.Path == path && a.Replica == w.own && a.N <= w.since {
			w.replaced = append(w.replaced, i)
			return n - a.N
		}
	}
	return 0
}

// told reports whether an add has told the removal i.
func (w *encoder) told(i int) bool {
	_, ok := slices.BinarySearch(w.replaced, i)
	return ok
}

// maxShared bounds the start of a key that is told by the key before, and thereby the memory that a
// short message can take at its receiver.
const maxShared = 64

// sharedStart returns the length of the longest start that two keys share, in whole characters. A
// length of less than three is not worth telling.
func sharedStart(a, b string) int {
	n, limit := 0, min(len(a), len(b), maxShared)
	for n < limit && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	if n < 3 {
		return 0
	}
	return n
}

// spot is the place under a key where the next piece of its encoding begins: after the atom of a
// replica at a path, or at the mark of a path.
type spot struct {
	path  string
	after causal.Replica
	marks bool
}

// keyState encodes the content of a key from a spot on, up to about limit bytes. It returns the
// spot to continue from, which is zero at the end.
func (w *encoder) keyState(key string, h history.Held, from spot, limit int) (_ []byte, next spot) {
	var at int
	kc := field.Text(w.kc[:0], 1, key)
	start := len(kc)
	defer func() { w.kc = kc }()
	if !from.marks {
		for path, e := range h.From(from.path) {
			for l := range e.All() {
				if path == from.path && l.Replica <= from.after {
					continue
				}
				if len(kc)-start >= limit {
					return kc, next
				}
				kc, at = field.Begin(kc, 2)
				kc = field.Text(kc, 1, path)
				kc = field.End(causal.AppendLeaf(kc, 2, w.t.put(l.Replica), l), at)
				if len(kc)-start >= limit {
					next = spot{path: causal.Clone(path), after: l.Replica}
				}
			}
		}
		from = spot{marks: true}
	}
	for path, a := range h.MarksFrom(from.path) {
		if len(kc)-start >= limit {
			return kc, spot{path: causal.Clone(path), marks: true}
		}
		kc, at = field.Begin(kc, 3)
		kc = field.End(causal.AppendMark(kc, path, a, w.t.put(a.By.Replica)), at)
	}
	return kc, spot{}
}

// push encodes own events of the log, from a number on, with the payloads of atoms that are still
// in keys. It leaves out what the receiver knows from the envelope and from the order: the origin,
// and the numbers of the events. It stops early if the result is larger than a message.
func (w *encoder) push(d *history.Delta, keys history.Keys, relative bases.Base) []byte {
	deps := d.Head.Set(d.Origin, 0)
	w.table.head, w.table.index = deps, nil
	w.table.others = append(w.table.others[:0], d.Origin)
	w.t, w.base, w.own, w.since, w.events = &w.table, relative, d.Origin,
		d.Base.Get(d.Origin), w.events[:0]
	w.key = ""
	for i := range d.Events {
		ev, _ := w.event(d.Events[i].Event, keys, bookmark{}, wire.MaxPayload+1)
		w.events = field.Message(w.events, 5, ev)
		if len(w.events) > wire.MaxPayload {
			break
		}
	}
	name, ids, numbers := relative.List(deps)
	others := w.t.others[1:]
	b := field.Number(make([]byte, 0, len(w.events)+32+16*len(numbers)+8*len(others)+4*len(
		d.Hashes)), 1, d.Base.Get(d.Origin))
	b = field.Fixeds(b, 2, ids)
	b = field.Numbers(b, 3, numbers)
	b = field.Fixeds(b, 4, others)
	b = field.Fixed32s(field.Text(append(b, w.events...), 6, name), 7, d.Hashes)
	if len(w.events) > keepBuffers {
		*w = encoder{}
	}
	return b
}

// keepBuffers is the largest push in bytes after which an encoder keeps its buffers.
const keepBuffers = 64 << 10

// encodeAck encodes an acknowledgement.
func encodeAck(n uint64, ready bool, members uint64, x history.EventHash) []byte {
	b := field.Flag(field.Number(make([]byte, 0, 32), 1, n), 2, ready)
	return field.Number(field.Fixed(b, 3, members), 4, uint64(x))
}
