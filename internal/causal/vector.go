package causal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Replica names one incarnation of one replica: a restart makes another one. Zero is nobody.
type Replica uint64

func (r Replica) String() string { return fmt.Sprintf("%016x", uint64(r)) }

// Dot names one event: the N-th change made by Replica, N from 1.
type Dot struct {
	Replica Replica
	N       uint64
}

func (d Dot) String() string { return fmt.Sprintf("%v:%d", d.Replica, d.N) }

// Compare orders dots by replica, then by number.
func (d Dot) Compare(o Dot) int {
	if c := cmp.Compare(d.Replica, o.Replica); c != 0 {
		return c
	}
	return cmp.Compare(d.N, o.N)
}

// Vector says for each replica how many of its events are covered; absent means none. It is immutable
// and safe for concurrent readers; the zero value covers nothing.
type Vector struct {
	entries []Dot // ascending by replica, N > 0
}

// MakeVector builds a vector from entries in any order. Of several entries of one replica the largest
// counts.
func MakeVector(entries ...Dot) Vector {
	e := slices.DeleteFunc(slices.Clone(entries), func(d Dot) bool { return d.N == 0 })
	slices.SortFunc(e, func(a, b Dot) int { return -a.Compare(b) })
	e = slices.CompactFunc(e, func(a, b Dot) bool { return a.Replica == b.Replica })
	slices.Reverse(e)
	return Vector{e}
}

// find returns where r is, or would be. It is on the way of every change and every merge.
func (v Vector) find(r Replica) (int, bool) {
	lo, hi := 0, len(v.entries)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); v.entries[mid].Replica < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(v.entries) && v.entries[lo].Replica == r
}

// Get returns the number of the last covered event of r.
func (v Vector) Get(r Replica) uint64 {
	if i, ok := v.find(r); ok {
		return v.entries[i].N
	}
	return 0
}

// Covers reports whether the event d is covered.
func (v Vector) Covers(d Dot) bool { return d.N <= v.Get(d.Replica) }

// Len returns the number of replicas with covered events.
func (v Vector) Len() int { return len(v.entries) }

// All yields the entries, ascending by replica.
func (v Vector) All() iter.Seq[Dot] { return slices.Values(v.entries) }

// With returns the vector raised to cover the events of d's replica up to d. The receiver stays.
func (v Vector) With(d Dot) Vector {
	i, ok := v.find(d.Replica)
	if ok && d.N <= v.entries[i].N || d.N == 0 {
		return v
	}
	if ok {
		e := slices.Clone(v.entries)
		e[i] = d
		return Vector{e}
	}
	e := make([]Dot, len(v.entries)+1)
	copy(e, v.entries[:i])
	e[i] = d
	copy(e[i+1:], v.entries[i:])
	return Vector{e}
}

// Set returns the vector with exactly n covered events of r, which may be fewer than before.
func (v Vector) Set(r Replica, n uint64) Vector {
	e := slices.Clone(v.entries)
	i, ok := v.find(r)
	switch {
	case ok && n == 0:
		e = slices.Delete(e, i, i+1)
	case ok:
		e[i].N = n
	case n > 0:
		e = slices.Insert(e, i, Dot{r, n})
	}
	return Vector{e}
}

// Leq reports whether o covers everything that v covers.
func (v Vector) Leq(o Vector) bool {
	if len(v.entries) > len(o.entries) {
		return false
	}
	if len(v.entries) > 0 && &v.entries[0] == &o.entries[0] { // a part of the same, or the same
		return true
	}
	j := 0
	for _, d := range v.entries {
		for j < len(o.entries) && o.entries[j].Replica < d.Replica {
			j++
		}
		if j == len(o.entries) || o.entries[j].Replica != d.Replica || o.entries[j].N < d.N {
			return false
		}
	}
	return true
}

// Before reports whether o covers everything that v covers, and more.
func (v Vector) Before(o Vector) bool { return v.Leq(o) && !o.Leq(v) }

// Equal reports whether both cover the same events.
func (v Vector) Equal(o Vector) bool { return slices.Equal(v.entries, o.entries) }

// Join returns what either covers: v or o itself when one covers the other.
func (v Vector) Join(o Vector) Vector {
	if o.Leq(v) {
		return v
	}
	if v.Leq(o) {
		return o
	}
	return merge(v, o, true)
}

// Meet returns what both cover.
func (v Vector) Meet(o Vector) Vector {
	if v.Leq(o) {
		return v
	}
	if o.Leq(v) {
		return o
	}
	return merge(v, o, false)
}

// merge walks both vectors; larger keeps the larger number of each replica, else the smaller.
func merge(v, o Vector, larger bool) Vector {
	a, b := v.entries, o.entries
	out := make([]Dot, 0, max(len(a), len(b))+1)
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].Replica, b[0].Replica); {
		case c == 0 && larger:
			out = append(out, Dot{a[0].Replica, max(a[0].N, b[0].N)})
			a, b = a[1:], b[1:]
		case c == 0:
			out = append(out, Dot{a[0].Replica, min(a[0].N, b[0].N)})
			a, b = a[1:], b[1:]
		case c < 0:
			if larger {
				out = append(out, a[0])
			}
			a = a[1:]
		default:
			if larger {
				out = append(out, b[0])
			}
			b = b[1:]
		}
	}
	if larger {
		out = append(append(out, a...), b...)
	}
	return Vector{out}
}

// String lists the entries in order, for logs and goldens.
func (v Vector) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, d := range v.entries {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(d.String())
	}
	b.WriteByte('}')
	return b.String()
}
