package causal

import (
	"encoding/binary"
	"errors"
)

// Total is the payload of a counter slot: the gross totals since the event Since, which began the
// chain of this atom. Continuing the chain keeps Since and adds to the totals; a reset ends the
// chain.
type Total struct {
	Since       uint64
	Plus, Minus uint64
}

var errTotal = errors.New("causal: malformed counter total")

// Payload encodes t; equal totals have equal bytes.
func (t Total) Payload() string {
	var b [3 * binary.MaxVarintLen64]byte
	p := binary.AppendUvarint(b[:0], t.Since)
	p = binary.AppendUvarint(p, t.Plus)
	return string(binary.AppendUvarint(p, t.Minus))
}

// ParseTotal decodes a payload. It accepts only encodings written by Payload.
func ParseTotal(p string) (Total, error) {
	var v [3]uint64
	at := 0
	for i := range v {
		var shift uint
		start := at
		for {
			if at == len(p) || at-start == binary.MaxVarintLen64 {
				return Total{}, errTotal
			}
			c := p[at]
			at++
			v[i] |= uint64(c&0x7f) << shift
			if c < 0x80 {
				if c == 0 && at-start > 1 || at-start == binary.MaxVarintLen64 && c > 1 {
					return Total{}, errTotal // not the shortest form, or over 64 bits
				}
				break
			}
			shift += 7
		}
	}
	if at != len(p) {
		return Total{}, errTotal
	}
	return Total{v[0], v[1], v[2]}, nil
}

// Contribution returns the amount that the slot at path adds to its counter: the totals of its atom
// minus the part of the chain that concurrent resets had seen. The totals of a chain are counted
// modulo 2^64, so their difference is exact whatever was reset before. A malformed payload
// contributes nothing.
func (s Store) Contribution(path string, l Leaf) (plus, minus uint64) {
	t, err := ParseTotal(l.Payload)
	if err != nil {
		return 0, 0
	}
	if m, ok := s.Mark(path); ok && t.Since <= m.N && m.N < l.N {
		return t.Plus - m.Plus, t.Minus - m.Minus
	}
	return t.Plus, t.Minus
}

// markReset adds the mark for a reset by d at a counter slot of another replica.
func (s Store) markReset(path string, e Entry, d Dot) Store {
	owner, slot := SlotOwner(path)
	if !slot || owner == d.Replica {
		return s
	}
	for l := range e.All() {
		if t, err := ParseTotal(l.Payload); err == nil {
			s = s.WithMark(path, Mark{N: l.N, Plus: t.Plus, Minus: t.Minus, By: d})
		}
	}
	return s
}
