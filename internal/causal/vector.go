package causal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
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

// chunkSize is the number of replicas up to which raising one copies them all.
const chunkSize = 32

// Vector says for each replica how many of its events are covered; absent means none. It is immutable
// and safe for concurrent readers; the zero value covers nothing.
//
// Raising a replica of a vector of n costs O(chunkSize + n/chunkSize), and comparing vectors made from
// one another skips the chunks they share. The form is a function of the entries.
type Vector struct {
	// Ascending by replica, N > 0. The first chunkSize entries are in first and the others in chunks
	// behind it, each of chunkSize but the last.
	first []Dot
	rest  *chunks // nil if there are none
}

type chunks struct {
	chunks []*[chunkSize]Dot
	n      int // entries in them
}

// MakeVector builds a vector from entries in any order. Of several entries of one replica the largest
// counts.
func MakeVector(entries ...Dot) Vector {
	e := slices.DeleteFunc(slices.Clone(entries), func(d Dot) bool { return d.N == 0 })
	slices.SortFunc(e, func(a, b Dot) int { return -a.Compare(b) })
	e = slices.CompactFunc(e, func(a, b Dot) bool { return a.Replica == b.Replica })
	slices.Reverse(e)
	return vectorOf(e)
}

// vectorOf takes ownership of entries in order.
func vectorOf(entries []Dot) Vector {
	if len(entries) <= chunkSize {
		return Vector{first: entries}
	}
	behind := entries[chunkSize:]
	c := &chunks{make([]*[chunkSize]Dot, 0, (len(behind)+chunkSize-1)/chunkSize), len(behind)}
	for part := range slices.Chunk(behind, chunkSize) {
		chunk := new([chunkSize]Dot)
		copy(chunk[:], part)
		c.chunks = append(c.chunks, chunk)
	}
	return Vector{slices.Clone(entries[:chunkSize]), c}
}

// flat returns all entries, which are not to be written.
func (v Vector) flat() []Dot {
	if v.rest == nil {
		return v.first
	}
	return slices.AppendSeq(make([]Dot, 0, v.Len()+1), v.All())
}

// chunk returns the entries from the one at i on that lie in one piece; i is a multiple of chunkSize.
func (v Vector) chunk(i int) []Dot {
	if i == 0 {
		return v.first
	}
	i -= chunkSize
	return v.rest.chunks[i/chunkSize][:min(chunkSize, v.rest.n-i)]
}

// find returns where r is, or would be. It is on the way of every change and every merge.
func (v Vector) find(r Replica) (int, bool) {
	e, from := v.first, 0
	if v.rest != nil && r > e[chunkSize-1].Replica {
		c := v.rest.chunks
		past := sort.Search(len(c), func(i int) bool { return c[i][0].Replica > r })
		from = max(past, 1) * chunkSize
		e = v.chunk(from)
	}
	lo, hi := 0, len(e)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); e[mid].Replica < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return from + lo, lo < len(e) && e[lo].Replica == r
}

// at returns the i-th entry.
func (v Vector) at(i int) Dot {
	if i < len(v.first) {
		return v.first[i]
	}
	i -= chunkSize
	return v.rest.chunks[i/chunkSize][i%chunkSize]
}

// Get returns the number of the last covered event of r.
func (v Vector) Get(r Replica) uint64 {
	if i, ok := v.find(r); ok {
		return v.at(i).N
	}
	return 0
}

// Covers reports whether the event d is covered.
func (v Vector) Covers(d Dot) bool { return d.N <= v.Get(d.Replica) }

// Len returns the number of replicas with covered events.
func (v Vector) Len() int {
	if v.rest == nil {
		return len(v.first)
	}
	return chunkSize + v.rest.n
}

// All yields the entries, ascending by replica.
func (v Vector) All() iter.Seq[Dot] {
	return func(yield func(Dot) bool) {
		for i := 0; i < v.Len(); i += chunkSize {
			for _, d := range v.chunk(i) {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// With returns the vector raised to cover the events of d's replica up to d. The receiver stays.
func (v Vector) With(d Dot) Vector {
	i, ok := v.find(d.Replica)
	switch {
	case ok && d.N <= v.at(i).N || d.N == 0:
		return v
	case ok:
		return v.replaced(i, d)
	}
	return v.inserted(i, d)
}

// replaced returns the vector with d as its i-th entry.
func (v Vector) replaced(i int, d Dot) Vector {
	if i < len(v.first) {
		e := slices.Clone(v.first)
		e[i] = d
		return Vector{e, v.rest}
	}
	i -= chunkSize
	c := &chunks{slices.Clone(v.rest.chunks), v.rest.n}
	chunk := *c.chunks[i/chunkSize]
	chunk[i%chunkSize] = d
	c.chunks[i/chunkSize] = &chunk
	return Vector{v.first, c}
}

// inserted returns the vector with d in front of its i-th entry.
func (v Vector) inserted(i int, d Dot) Vector {
	old := v.flat()
	e := make([]Dot, len(old)+1)
	copy(e, old[:i])
	e[i] = d
	copy(e[i+1:], old[i:])
	return vectorOf(e)
}

// Set returns the vector with exactly n covered events of r, which may be fewer than before.
func (v Vector) Set(r Replica, n uint64) Vector {
	i, ok := v.find(r)
	switch {
	case ok && n == 0:
		return vectorOf(slices.Delete(slices.Clone(v.flat()), i, i+1))
	case ok:
		return v.replaced(i, Dot{r, n})
	case n > 0:
		return v.inserted(i, Dot{r, n})
	}
	return v
}

// Leq reports whether o covers everything that v covers.
func (v Vector) Leq(o Vector) bool {
	if v.Len() > o.Len() {
		return false
	}
	if v.rest == nil && o.rest == nil {
		return leq(v.first, o.first)
	}
	for i := 0; i < v.Len(); i += chunkSize {
		a, b := v.chunk(i), o.chunk(i)
		if !leq(a, b) && !v.leqAt(i, len(a), o) { // replicas that only o has push its entries along
			return false
		}
	}
	return true
}

// leqAt is Leq for the n entries of v from i on.
func (v Vector) leqAt(i, n int, o Vector) bool {
	j, _ := o.find(v.at(i).Replica)
	for end := i + n; i < end; i++ {
		d := v.at(i)
		for j < o.Len() && o.at(j).Replica < d.Replica {
			j++
		}
		if j == o.Len() || o.at(j).Replica != d.Replica || o.at(j).N < d.N {
			return false
		}
	}
	return true
}

// leq is Leq for entries in order.
func leq(a, b []Dot) bool {
	if len(a) > len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] { // a part of the same, or the same
		return true
	}
	j := 0
	for _, d := range a {
		for j < len(b) && b[j].Replica < d.Replica {
			j++
		}
		if j == len(b) || b[j].Replica != d.Replica || b[j].N < d.N {
			return false
		}
	}
	return true
}

// Before reports whether o covers everything that v covers, and more.
func (v Vector) Before(o Vector) bool { return v.Leq(o) && !o.Leq(v) }

// Equal reports whether both cover the same events.
func (v Vector) Equal(o Vector) bool {
	if v.Len() != o.Len() {
		return false
	}
	for i := 0; i < v.Len(); i += chunkSize {
		if a, b := v.chunk(i), o.chunk(i); &a[0] != &b[0] && !slices.Equal(a, b) {
			return false
		}
	}
	return true
}

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
	a, b := v.flat(), o.flat()
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
	return vectorOf(out)
}

// String lists the entries in order, for logs and goldens.
func (v Vector) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for d := range v.All() {
		if b.Len() > 1 {
			b.WriteByte(' ')
		}
		b.WriteString(d.String())
	}
	b.WriteByte('}')
	return b.String()
}
