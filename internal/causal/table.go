package causal

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// table lists the replicas of one encoded message, ascending, each once. Indexes into it stand for
// them.
type table struct {
	ids  []Replica
	used []bool // by the reader: whether something points at it
}

// add makes room for r.
func (t *table) add(r Replica) {
	if i, ok := slices.BinarySearch(t.ids, r); !ok {
		t.ids = slices.Insert(t.ids, i, r)
	}
}

func (t *table) index(r Replica) uint64 {
	i, _ := slices.BinarySearch(t.ids, r)
	return uint64(i)
}

// appendTo writes the table as field 2, and v as field 3 beside it.
func (t *table) appendTo(b []byte, v Vector) []byte {
	if len(t.ids) == 0 {
		return b
	}
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(8*len(t.ids)))
	for _, r := range t.ids {
		b = protowire.AppendFixed64(b, uint64(r))
	}
	if v.Len() == 0 {
		return b
	}
	size := 0
	for _, r := range t.ids {
		size += protowire.SizeVarint(v.Get(r))
	}
	b = protowire.AppendTag(b, 3, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	for _, r := range t.ids {
		b = protowire.AppendVarint(b, v.Get(r))
	}
	return b
}

// readTable reads what appendTo writes.
func readTable(r *reader) (t table, v Vector, err error) {
	ids := reader{b: r.bytes(2)}
	if len(ids.b)/8 > MaxReplicas {
		return t, v, fmt.Errorf("%w: %d replicas", ErrTooLarge, len(ids.b)/8)
	}
	t.ids = make([]Replica, 0, len(ids.b)/8)
	t.used = make([]bool, len(ids.b)/8)
	for last := Replica(0); len(ids.b) > 0; {
		next := Replica(ids.fixed64())
		if next <= last { // zero is nobody
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
	for i, id := range t.ids {
		if n := numbers.varint(); n > 0 {
			v.entries = append(v.entries, Dot{id, n})
			t.used[i] = true
		}
	}
	if len(v.entries) == 0 {
		numbers.fail()
	}
	return t, v, numbers.done("vector")
}

// dot reads an index as the field num and a number as the next one.
func (t *table) dot(r *reader, num protowire.Number) Dot {
	i := r.number(num)
	n := r.number(num + 1)
	if i >= uint64(len(t.ids)) || n == 0 {
		r.fail()
		return Dot{}
	}
	t.used[i] = true
	return Dot{t.ids[i], n}
}

// allUsed refuses tables with entries that nothing points at.
func (t *table) allUsed() error {
	if slices.Contains(t.used, false) {
		return fmt.Errorf("%w: unused replica", ErrMalformed)
	}
	return nil
}

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func appendBytes(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func appendMessage(b []byte, num protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
}
