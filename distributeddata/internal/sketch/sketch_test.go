package sketch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// pair returns two sets of about n symbols, of which d are in only one of them.
func pair(r *rand.Rand, n, d int) (a, b, onlyA, onlyB []uint64) {
	for range n - d {
		s := r.Uint64()
		a, b = append(a, s), append(b, s)
	}
	for range d {
		s := r.Uint64()
		if r.IntN(2) == 0 {
			a, onlyA = append(a, s), append(onlyA, s)
		} else {
			b, onlyB = append(b, s), append(onlyB, s)
		}
	}
	return a, b, onlyA, onlyB
}

func TestDifference_IsFoundWithCellsInProportion(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ n, d, cells int }{{0, 0, 1}, {1000, 0, 1}, {1000, 1, 8},
		{1000, 10, 40}, {20_000, 200, 400}, {20_000, 2000, 3200}, {300, 300, 600}} {
		for range 10 {
			a, b, wantA, wantB := pair(r, c.n, c.d)
			sa, sb := New(slices.Values(a)), New(slices.Values(b))
			cells := 1
			for {
				gotA, gotB, ok := Difference(sa.Cells(cells), sb.Cells(cells))
				if ok {
					require.ElementsMatch(t, wantA, gotA)
					require.ElementsMatch(t, wantB, gotB)
					break
				}
				cells += max(1, cells/8)
				require.LessOrEqual(t, cells, 2*c.cells, "n %d, d %d", c.n, c.d)
			}
		}
	}
}

func TestCells_GrownAndMadeAtOnceAreEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, _, _, _ := pair(r, 500, 0)
	grown := New(slices.Values(a))
	for n := 1; n <= 300; n += 7 {
		grown.Cells(n)
	}
	slices.Reverse(a)
	require.Equal(t, New(slices.Values(a)).Cells(300), grown.Cells(300))
}

func TestExpected_IsCloseToTheCount(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	a, _, _, _ := pair(r, 100_000, 0)
	for i, c := range New(slices.Values(a)).Cells(500) {
		require.InDelta(t, Expected(len(a), i), c.Count, 4000, "cell %d", i)
	}
}

// Decoding any cells of a peer terminates, in bounded memory.
func FuzzDifference(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		var a []Cell
		for len(data) >= 3 {
			s := mix(uint64(data[0]))
			a = append(a, Cell{int64(int8(data[1])), s * uint64(data[2]&1),
				check(s) * uint64(data[2]&1)})
			data = data[3:]
		}
		onlyA, onlyB, _ := Difference(a, make([]Cell, len(a)))
		if len(onlyA)+len(onlyB) > len(a)+1 {
			t.Fatalf("%d symbols out of %d cells", len(onlyA)+len(onlyB), len(a))
		}
	})
}

// BenchmarkDifference finds d of n: it builds both sketches and decodes their difference.
func BenchmarkDifference(b *testing.B) {
	for _, d := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("keys=100000/differing=%d", d), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			x, y, _, _ := pair(r, 100_000, 2*d)
			cells := 0
			for b.Loop() {
				sx, sy := New(slices.Values(x)), New(slices.Values(y))
				for cells = 64; ; cells += cells / 2 {
					if _, _, ok := Difference(sx.Cells(cells), sy.Cells(cells)); ok {
						break
					}
				}
			}
			b.ReportMetric(float64(cells), "cells")
		})
	}
}
