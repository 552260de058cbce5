package crdttest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"

	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

var laws = map[int]string{
	1:  "merge is commutative",
	2:  "merge is associative",
	3:  "merge is idempotent",
	4:  "the empty value is the identity",
	5:  "a change only adds information",
	6:  "a delta is equivalent to the state",
	7:  "a delta takes effect once",
	8:  "a delta after a gap is rejected",
	11: "replicas converge",
	12: "the value equals the specification",
	13: "a reset removes what it has seen, before or after a merge",
	15: "the encoding is exact",
	16: "the size is bounded",
	17: "values are immutable",
	18: "values of another type or version are rejected",
	19: "stamps only grow, and stay near the clock",
}

// ok fails the test with the text of the law unless holds is true.
func (h *history[T]) ok(law int, holds bool, format string, args ...any) {
	if !holds {
		h.t.Fatalf("law %d is broken: %s\n%s\n%s", law, laws[law], fmt.Sprintf(format, args...),
			h.story())
	}
}

// same checks that a value has the given encoding.
func (h *history[T]) same(law int, want []byte, v T, what string) {
	if got := h.encode(v); !bytes.Equal(want, got) {
		h.ok(law, false, "%s differ\nfirst  %x\nsecond %x, which shows as %s", what, want, got,
			h.text(v))
	}
}

// check checks laws 12 and 16 for the current value of a replica.
func (h *history[T]) check(a *actor[T]) {
	if h.typ.Show == nil {
		return
	}
	got := h.typ.Show(a.value)
	if h.typ.Spec != nil {
		want := h.oracle.value(a.seen)
		h.ok(12, maps.Equal(want, got), "replica %d shows %v, the specification %v", a.id,
			got, want)
	}
	if h.typ.MaxBytes != nil {
		n, most := len(h.encode(a.value)), h.typ.MaxBytes(len(got))
		h.ok(16, n <= most, "replica %d has %d bytes for %d cells, at most %d", a.id, n,
			len(got), most)
	}
}

// deltaLaws checks a new delta at the replica that made it.
func (h *history[T]) deltaLaws(before T, after []byte, delta crdt.Delta) {
	at := before
	for _, law := range []int{6, 7} { // the second one is a duplicate
		err := h.typ.apply(&at, h.resent(delta))
		h.ok(law, err == nil, "a delta at the state it was made from: %v", err)
		h.same(law, after, at, "the state, and before with the delta")
	}
}

// commutes checks law 13 for any change, with the delta applied before and after a merge.
func (h *history[T]) commutes(before, after T, d crdt.Delta) {
	for _, o := range h.actors {
		merged := before.Merge(o.value)
		err := h.typ.apply(&merged, d)
		h.ok(13, err == nil, "a delta that could be applied before a merge with replica %d is refused after it: %v", o.id, err)
		h.same(13, h.encode(after.Merge(o.value)), merged, "a delta before a merge, and after it")
	}
}

// remove checks law 13 for a value in a map. After a removal nothing is left of the value, whatever
// older state is merged; a removal that has not seen the value has no effect.
func (h *history[T]) remove(a *actor[T]) {
	key, was, there := h.typ.key, h.encode(a.value), h.typ.key.there(a.value)
	h.update(a, func(_ *Draw, w *crdt.Writer, v *T) []Effect {
		key.remove(w, v)
		return Reset("")
	})
	if !there {
		h.same(13, was, a.value, "a map without the key, and after its removal")
	}
	h.ok(13, !key.there(a.value), "a removed key is still there")
	for _, k := range h.kept {
		if seen(k.bytes).Leq(seen(h.encode(a.value))) {
			h.ok(13, !key.there(a.value.Merge(k.value)),
				"a removed key comes back with an older state")
		}
	}
}

// seen returns the changes that an encoded value has seen.
func seen(encoded []byte) causal.Vector {
	_, v, _ := causal.ParseValue(encoded)
	return v
}

// clock checks law 19 for the stamp of the next write of a.
func (h *history[T]) clock(a *actor[T]) {
	var r crdt.LWWRegister[bool]
	r.Set(a.replica.Writer(), true)
	a.last = max(a.ms<<16, a.last+1)
	stamp := r.Stamp()
	h.ok(19, stamp > a.stamp, "stamp %d of replica %d follows %d", stamp, a.id, a.stamp)
	h.ok(19, stamp>>16 <= a.ahead, "stamp %d of replica %d, whose clock never passed %d ms", stamp,
		a.id, a.ahead)
	a.stamp = stamp
}

// strange checks law 18: bytes and deltas of other types and of a later version are rejected.
func (h *history[T]) strange() {
	if h.own {
		return
	}
	b := bytes.Clone(h.encode(h.actors[0].value))
	b[1]++ // the version
	v, err := h.survive(b)
	h.ok(18, errors.Is(err, crdt.ErrVersion), "Decode of a later version: %v", err)
	h.same(18, h.encode(h.typ.Empty), v, "the receiver of a Decode, and after it was refused")
	var set crdt.ORSet[string]
	var flag crdt.DWFlag
	replica := crdt.NewReplica(replicas + 1)
	add, err := crdt.Update(replica, &set, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "x")
		return nil
	})
	h.ok(18, err == nil, "delta: %v", err)
	off, err := crdt.Update(replica, &flag, func(w *crdt.Writer, f *crdt.DWFlag) error {
		f.Disable(w)
		return nil
	})
	h.ok(18, err == nil, "delta: %v", err)
	if _, same := any(set).(T); !same {
		refused(h, set, add)
	}
	if _, same := any(flag).(T); !same {
		refused(h, flag, off)
	}
}

// refused checks that T rejects both a value of another type and its delta.
func refused[T crdt.Value[T], O crdt.Value[O]](h *history[T], other O, d crdt.Delta) {
	b, err := other.AppendBinary(nil)
	h.ok(18, err == nil, "%T: %v", other, err)
	v, err := h.survive(b)
	h.ok(18, errors.Is(err, crdt.ErrType), "Decode of a %T: %v", other, err)
	h.same(18, h.encode(h.typ.Empty), v, "the receiver of a Decode, and after it was refused")
	at := h.actors[0].value
	err = h.typ.apply(&at, d)
	h.ok(18, errors.Is(err, crdt.ErrType), "delta of a %T: %v", other, err)
	h.same(18, h.encode(h.actors[0].value), at, "a value, and after a delta of another type")
}

// resent returns the delta after encoding and decoding.
func (h *history[T]) resent(d crdt.Delta) crdt.Delta {
	b, err := d.AppendBinary(nil)
	h.ok(15, err == nil, "delta: %v", err)
	out, err := crdt.ParseDelta(b)
	h.ok(15, err == nil, "delta: %v", err)
	again, err := out.AppendBinary(nil)
	h.ok(15, err == nil && bytes.Equal(b, again), "delta %x encodes as %x after decoding", b, again)
	return out
}

// algebra checks laws 1 to 4 on the current states, both shared and built separately.
func (h *history[T]) algebra() {
	a, b, c := h.actors[0].value, h.actors[1].value, h.actors[2].value
	ab, ac := h.encode(h.merge(a, b)), h.encode(a)
	h.same(1, ab, b.Merge(a), "replicas 1⊔2, and 2⊔1")
	h.same(1, ab, h.apart(a).Merge(h.apart(b)), "replicas 1⊔2, and the same out of their encodings")
	h.same(2, h.encode(h.merge(h.merge(a, b), c)), a.Merge(b.Merge(c)),
		"replicas (1⊔2)⊔3, and 1⊔(2⊔3)")
	h.same(3, ac, a.Merge(a), "replica 1, and 1⊔1")
	h.same(3, ac, h.apart(a).Merge(a), "replica 1, and its encoding⊔1")
	h.same(4, ac, a.Merge(h.typ.Empty), "replica 1, and 1⊔empty")
	h.same(4, ac, h.typ.Empty.Merge(a), "replica 1, and empty⊔1")
}

// converge brings all replicas up to date, once with deltas in any order and once with states: law
// 11.
func (h *history[T]) converge() {
	all := h.actors[0].value.Merge(h.actors[1].value).Merge(h.actors[2].value)
	want := h.encode(all)
	for _, a := range h.actors {
		if h.own {
			for _, o := range h.actors {
				a.value, a.seen = a.value.Merge(o.value), a.seen.union(o.seen)
			}
		}
		for range h.sent {
			for _, d := range h.sent {
				if !a.seen[d.e.id] && d.e.before.within(a.seen) {
					h.deliver(a, d)
				}
			}
		}
		h.check(a)
		h.same(11, want, a.value,
			fmt.Sprintf("all states merged, and replica %d with all it lacked",
				a.id))
		if h.typ.Show != nil {
			got, all := h.typ.Show(a.value), h.typ.Show(all)
			h.ok(11, maps.Equal(got, all),
				"replica %d shows %v and not %v, though the bytes are equal", a.id, got, all)
		}
	}
}

// untouched checks law 17.
func (h *history[T]) untouched(old []kept[T]) {
	for _, k := range old {
		h.same(17, k.bytes, k.value, "an old value as it was, and as it is now")
	}
}

// garbage checks the second half of law 15: damaged bytes are rejected, or encode some value.
func (h *history[T]) garbage() {
	b := bytes.Clone(h.encode(h.actors[0].value))
	for range rapid.IntRange(1, 3).Draw(h.t, "damages") {
		at := rapid.IntRange(0, len(b)).Draw(h.t, "damage at")
		switch x := rapid.Byte().Draw(h.t, "damage"); {
		case at == len(b) || x < 64:
			b = append(b[:at:at], append([]byte{x}, b[at:]...)...)
		case x < 96:
			b = b[:at]
		default:
			b[at] ^= x
		}
	}
	if v, err := h.survive(b); err == nil {
		h.apart(v)
	}
}

func (h *history[T]) survive(b []byte) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.ok(15, false, "Decode panics on %x: %v", b, r)
		}
	}()
	return h.typ.Empty.Decode(b)
}

// apart returns an equal value that shares no memory.
func (h *history[T]) apart(v T) T { return h.decode(h.encode(v)) }

func (h *history[T]) decode(b []byte) T {
	v, err := h.typ.Empty.Decode(b)
	h.ok(15, err == nil, "Decode refuses what AppendBinary wrote, %x: %v", b, err)
	h.same(15, b, v, "an encoding, and that of what it decodes to")
	return v
}

// encode also checks that AppendBinary appends.
func (h *history[T]) encode(v T) []byte {
	const before = "before"
	b, err := v.AppendBinary([]byte(before))
	h.ok(15, err == nil, "AppendBinary: %v", err)
	b, appends := bytes.CutPrefix(b, []byte(before))
	h.ok(15, appends, "AppendBinary does not append to the given slice: it returns %x", b)
	return b
}
