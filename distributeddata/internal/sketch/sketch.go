// Package sketch finds the difference of two sets of 64-bit symbols by exchanging data in
// proportion to the difference, not to the sets. It is a rateless invertible Bloom lookup table
// after Yang, Gilad and Alizadeh, "Practical Rateless Set Reconciliation", SIGCOMM 2024.
//
// Each side maps its symbols to an endless sequence of cells, in which a symbol occurs ever less
// often. Subtracting the cells of one side from those of the other leaves the cells of the
// difference. The first 1.35 to 2.5 cells per differing symbol suffice to recover all of them. The
// side that wants the difference requests more cells until that works.
//
// A symbol is a hash; two different things with equal symbols look the same. Cells of a malicious
// peer can make the result wrong, but decoding always terminates.
package sketch

import (
	"iter"
	"math"
)

// Cell is the sum of the symbols mapped to it.
type Cell struct {
	Count int64
	Sum   uint64 // exclusive or of the symbols
	Check uint64 // and of their check hashes
}

func (c *Cell) add(symbol uint64, n int64) {
	c.Count += n
	c.Sum ^= symbol
	c.Check ^= check(symbol)
}

func (c Cell) minus(o Cell) Cell {
	return Cell{c.Count - o.Count, c.Sum ^ o.Sum, c.Check ^ o.Check}
}

// pure reports whether c appears to hold exactly one symbol.
func (c Cell) pure() bool { return (c.Count == 1 || c.Count == -1) && c.Check == check(c.Sum) }

// Expected returns approximately how many of n symbols the i-th cell holds on average.
func Expected(n, i int) int64 { return 2 * int64(n) / int64(i+2) }

// Sketch is a growing prefix of the cells of one set.
type Sketch struct {
	walks []walk
	cells []Cell
}

// New returns the sketch of a set, without cells yet. symbols must yield each symbol once.
func New(symbols iter.Seq[uint64]) *Sketch {
	s := &Sketch{}
	for symbol := range symbols {
		s.walks = append(s.walks, newWalk(symbol))
	}
	return s
}

// Len returns the size of the set.
func (s *Sketch) Len() int { return len(s.walks) }

// Cells returns the first n cells. The caller must not modify them.
func (s *Sketch) Cells(n int) []Cell {
	if n > len(s.cells) {
		s.cells = append(s.cells, make([]Cell, n-len(s.cells))...)
		for i := range s.walks {
			w := &s.walks[i]
			for ; w.next < uint64(n); w.step() {
				s.cells[w.next].add(w.symbol, 1)
			}
		}
	}
	return s.cells[:n]
}

// Difference computes, from equally many first cells of two sets, the symbols that only one of them
// has. ok is false if more cells are needed.
func Difference(a, b []Cell) (onlyA, onlyB []uint64, ok bool) {
	cells := make([]Cell, len(a))
	var pure []int
	for i := range cells {
		if cells[i] = a[i].minus(b[i]); cells[i].pure() {
			pure = append(pure, i)
		}
	}
	for len(pure) > 0 && len(onlyA)+len(onlyB) <= len(cells) {
		c := cells[pure[len(pure)-1]]
		pure = pure[:len(pure)-1]
		if !c.pure() {
			continue // decoded from another cell meanwhile
		}
		if c.Count > 0 {
			onlyA = append(onlyA, c.Sum)
		} else {
			onlyB = append(onlyB, c.Sum)
		}
		for w := newWalk(c.Sum); w.next < uint64(len(cells)); w.step() {
			if cells[w.next].add(c.Sum, -c.Count); cells[w.next].pure() {
				pure = append(pure, int(w.next))
			}
		}
	}
	for _, c := range cells {
		if c != (Cell{}) {
			return nil, nil, false
		}
	}
	return onlyA, onlyB, true
}

// walk iterates over the cells that a symbol is mapped to: the first one always, and cell i with a
// probability of 1/(1+i/2).
type walk struct {
	symbol uint64
	random uint64
	next   uint64
}

func newWalk(symbol uint64) walk {
	return walk{symbol: symbol, random: mix(symbol ^ 0x9e3779b97f4a7c15)}
}

func (w *walk) step() {
	w.random = mix(w.random + 0x9e3779b97f4a7c15)
	u := (float64(w.random>>11) + 1) / (1 << 53) // in (0, 1]
	gap := math.Ceil((float64(w.next) + 1.5) * (1/math.Sqrt(u) - 1))
	w.next += uint64(max(1, min(gap, 1<<53)))
}

func check(symbol uint64) uint64 { return mix(symbol + 0xd1b54a32d192ed03) }

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
