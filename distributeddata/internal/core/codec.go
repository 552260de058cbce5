package core

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// The messages that carry data are written and read by hand, in the format of proto/replication.proto:
// an update costs one encoding, and what a reader allocates is bounded by what it reads. Generated code
// reads and writes the same; a test compares them.

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func appendFixed(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), v)
}

func appendFlag(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendNumber(b, num, 1)
}

func appendText(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func appendMessage(b []byte, num protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
}

func appendFixeds[T ~uint64](b []byte, num protowire.Number, vs []T) []byte {
	if len(vs) == 0 {
		return b
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.BytesType), uint64(8*len(vs)))
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func appendNumbers(b []byte, num protowire.Number, vs []uint64) []byte {
	if len(vs) == 0 {
		return b
	}
	size := 0
	for _, v := range vs {
		size += protowire.SizeVarint(v)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.BytesType), uint64(size))
	for _, v := range vs {
		b = protowire.AppendVarint(b, v)
	}
	return b
}

func appendVector(b []byte, num protowire.Number, v causal.Vector, relative base) []byte {
	name, ids, numbers := relative.list(v)
	return appendMessage(b, num, appendName(appendNumbers(appendFixeds(nil, 1, ids), 2, numbers), 3, name))
}

// appendName appends the name of a base, if it has one.
func appendName(b []byte, num protowire.Number, name []byte) []byte {
	if len(name) == 0 {
		return b
	}
	return appendMessage(b, num, name)
}

// replicas is the table that the indexes of one message or stream point into: the replicas of head,
// and behind them others.
type replicas struct {
	head   causal.Vector
	others []causal.Replica
	index  map[causal.Replica]uint64 // of the others
}

func replicasOf(head causal.Vector) *replicas { return &replicas{head: head} }

func (t *replicas) put(r causal.Replica) uint64 {
	if i, n := t.head.Rank(r); n > 0 {
		return uint64(i)
	}
	i, ok := t.index[r]
	if !ok {
		if t.index == nil {
			t.index = map[causal.Replica]uint64{}
		}
		i = uint64(t.head.Len() + len(t.others))
		t.index[r] = i
		t.others = append(t.others, r)
	}
	return i
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

// encoder writes events and keys. It keeps its buffers.
type encoder struct {
	t          *replicas
	base       base
	own        causal.Replica // of a push: its events do not name it
	ev, kc, in []byte
}

// bookmark is where in an event the next piece of its encoding begins: an item of a key.
type bookmark struct{ key, item int }

// event encodes an event of the log from a place on, about as much as limit says, and returns the place
// to go on from. Every piece names the event. Payloads of atoms that still live in the state are put
// back; the others are marked gone. The result is valid until the next call.
func (w *encoder) event(e event, keys Keys, from bookmark, limit int) (_ []byte, next bookmark) {
	ev := w.ev[:0]
	if w.own == 0 {
		ev = appendNumber(ev, 1, w.t.put(e.dot.Replica))
		ev = appendNumber(ev, 2, e.dot.N)
	}
	first := from == bookmark{}
	for start := len(ev); from.key < len(e.keys) && len(ev)-start < limit; {
		k := e.keys[from.key]
		from.item = w.keyChange(k, keys, from.item, limit-(len(ev)-start))
		ev = appendMessage(ev, 3, w.kc)
		if from.item == k.items() {
			from = bookmark{key: from.key + 1}
		}
	}
	if first && e.deps.Len() > 0 {
		ev = appendVector(ev, 4, e.deps, w.base)
	}
	w.ev = ev
	return ev, from
}

// items is the number of parts that a key change can be cut into.
func (k keyChange) items() int { return len(k.Adds) + len(k.Removes) + len(k.Marks) }

// keyChange encodes the items of a key change from one on, about as much as limit says, into w.kc, and
// returns the item to go on from.
func (w *encoder) keyChange(k keyChange, keys Keys, from, limit int) int {
	kc, m := appendText(w.kc[:0], 1, k.key), w.in
	var s Held
	if from < len(k.Adds) {
		s, _ = keys.Get(k.key)
	}
	start := len(kc)
	more := func() bool { return len(kc)-start < limit }
	for ; from < len(k.Adds) && more(); from++ {
		a := k.Adds[from]
		m = appendText(m[:0], 1, a.Path)
		e, lives := s.Get(a.Path)
		if l, mine := e.Of(a.Replica); lives && mine && l.N == a.N {
			m = appendText(m, 2, l.Payload)
		} else {
			m = appendFlag(m, 3, true)
		}
		kc = appendMessage(kc, 2, m)
	}
	for ; from >= len(k.Adds) && from < len(k.Adds)+len(k.Removes) && more(); from++ {
		a := k.Removes[from-len(k.Adds)]
		m = appendText(m[:0], 1, a.Path)
		m = appendNumber(m, 2, w.t.put(a.Replica))
		m = appendNumber(m, 3, a.N)
		kc = appendMessage(kc, 3, m)
	}
	kc = appendFlag(kc, 4, k.Clear)
	for before := len(k.Adds) + len(k.Removes); from >= before && from < k.items() && more(); from++ {
		a := k.Marks[from-before]
		m = w.mark(m[:0], a.Path, a.Mark)
		kc = appendMessage(kc, 5, m)
	}
	w.kc, w.in = kc, m
	return from
}

func (w *encoder) mark(m []byte, path string, a causal.Mark) []byte {
	m = appendText(m, 1, path)
	m = appendNumber(m, 2, a.N)
	m = appendNumber(m, 3, a.Plus)
	m = appendNumber(m, 4, a.Minus)
	m = appendNumber(m, 5, w.t.put(a.By.Replica))
	return appendNumber(m, 6, a.By.N)
}

// spot is where under a key the next piece of its encoding begins: behind the atom of a replica at a
// path, or at the mark of a path.
type spot struct {
	path  string
	after causal.Replica
	marks bool
}

// keyState encodes what is under a key from a spot on, about as much as limit says, and returns the spot
// to go on from, the zero value at the end.
func (w *encoder) keyState(key string, h Held, from spot, limit int) (_ []byte, next spot) {
	kc, m := appendText(w.kc[:0], 1, key), w.in
	start := len(kc)
	defer func() { w.kc, w.in = kc, m }()
	if !from.marks {
		for path, e := range h.From(from.path) {
			for l := range e.All() {
				if path == from.path && l.Replica <= from.after {
					continue
				}
				if len(kc)-start >= limit {
					return kc, next
				}
				m = appendText(m[:0], 1, path)
				m = appendNumber(m, 2, w.t.put(l.Replica))
				m = appendNumber(m, 3, l.N)
				m = appendText(m, 4, l.Payload)
				kc = appendMessage(kc, 2, m)
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
		m = w.mark(m[:0], path, a)
		kc = appendMessage(kc, 3, m)
	}
	return kc, spot{}
}

// encodePush writes own events of the log, from one number on, with what lives of them in keys. What is
// known from the envelope and from the order is left out: the origin, and the numbers of the events. What is
// much larger than a message is not written to its end.
func encodePush(d *delta, origin causal.Replica, keys Keys, relative base) []byte {
	deps := d.head.Set(origin, 0)
	w := encoder{t: replicasOf(deps), base: relative, own: origin}
	var events []byte
	for _, e := range d.events {
		ev, _ := w.event(e.event, keys, bookmark{}, wire.MaxPayload+1)
		events = appendMessage(events, 5, ev)
		if len(events) > wire.MaxPayload {
			break
		}
	}
	name, ids, numbers := relative.list(deps)
	b := appendNumber(make([]byte, 0, len(events)+16+16*len(numbers)), 1, d.base.Get(origin))
	b = appendFixeds(b, 2, ids)
	b = appendNumbers(b, 3, numbers)
	b = appendFixeds(b, 4, w.t.others)
	return appendName(append(b, events...), 6, name)
}
