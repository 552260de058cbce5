package causal

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/field"
)

// table lists the replicas of one encoded message, ascending and without duplicates. The message
// refers to replicas by index.
type table struct {
	ids  []Replica
	used []bool   // by the reader: whether the entry was used
	last []uint64 // by the reader: the largest number of an atom

	short bool // by the writer: whether a replica was looked up that is missing
}

// vectorTable lists the replicas of v. The vector of a value used alone contains all replicas of
// its state.
func vectorTable(v Vector) (t table) {
	t.ids = make([]Replica, 0, v.Len())
	for d := range v.All() {
		t.ids = append(t.ids, d.Replica)
	}
	return t
}

// find returns the index of r, or where it would be inserted.
func (t *table) find(r Replica) int {
	lo, hi := 0, len(t.ids)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); t.ids[mid] < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// add inserts r.
func (t *table) add(r Replica) {
	if i := t.find(r); i == len(t.ids) || t.ids[i] != r {
		t.ids = slices.Insert(t.ids, i, r)
	}
}

func (t *table) index(r Replica) uint64 {
	i := t.find(r)
	if i == len(t.ids) || t.ids[i] != r {
		t.short = true
	}
	return uint64(i)
}

// appendTo writes the table as field 2 and the numbers of v as field 3.
func (t *table) appendTo(b []byte, v Vector) []byte {
	if len(t.ids) == 0 {
		return b
	}
	b = field.Fixeds(b, 2, t.ids)
	if v.Len() == 0 {
		return b
	}
	b, at := field.Begin(b, 3)
	for _, r := range t.ids {
		b = protowire.AppendVarint(b, v.Get(r))
	}
	return field.End(b, at)
}

// readTable reads the fields written by appendTo.
func readTable(r *reader) (t table, v Vector, err error) {
	ids := reader{b: r.bytes(2)}
	if len(ids.b)/8 > MaxReplicas {
		return t, v, fmt.Errorf("%w: %d replicas", ErrTooLarge, len(ids.b)/8)
	}
	t.ids = make([]Replica, 0, len(ids.b)/8)
	t.used = make([]bool, len(ids.b)/8)
	t.last = make([]uint64, len(ids.b)/8)
	for last := Replica(0); len(ids.b) > 0; {
		next := Replica(ids.fixed64())
		if next <= last { // zero is not a replica
			ids.fail()
		}
		t.ids, last = append(t.ids, next), next
	}
	if err := ids.done("replicas"); err != nil {
		return t, v, err
	}
	numbers := reader{b: r.bytes(3)}
	if len(numbers.b) == 0 {
		return t, v, nil
	}
	var seen []Dot
	for i, id := range t.ids {
		if n := numbers.varint(); n > 0 {
			seen = append(seen, Dot{id, n})
			t.used[i] = true
		}
	}
	if len(seen) == 0 {
		numbers.fail()
	}
	return t, vectorOf(seen), numbers.done("vector")
}

// dot reads an index in field num and a number in the next field.
func (t *table) dot(r *reader, num protowire.Number) Dot {
	_, d := t.place(r, num)
	return d
}

// place is like dot and also returns the index.
func (t *table) place(r *reader, num protowire.Number) (int, Dot) {
	i := r.number(num)
	n := r.number(num + 1)
	if i >= uint64(len(t.ids)) || n == 0 {
		r.fail()
		return 0, Dot{}
	}
	t.used[i] = true
	return int(i), Dot{t.ids[i], n}
}

// atom reads an atom from the fields starting at num.
func (t *table) atom(r *reader, num protowire.Number) Leaf {
	i, d := t.place(r, num)
	if d.N > 0 {
		t.last[i] = max(t.last[i], d.N)
	}
	return Leaf{d, string(r.bytes(num + 2))}
}

// covered rejects atoms not covered by the vector.
func (t *table) covered(seen Vector) error {
	for i, n := range t.last {
		if d := (Dot{t.ids[i], n}); !seen.Covers(d) {
			return fmt.Errorf("%w: %v not seen", ErrMalformed, d)
		}
	}
	return nil
}

// allUsed rejects tables with unused entries.
func (t *table) allUsed() error {
	if slices.Contains(t.used, false) {
		return fmt.Errorf("%w: unused replica", ErrMalformed)
	}
	return nil
}
