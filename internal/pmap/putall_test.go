package pmap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test covers existing keys, new keys and keys in between, from an empty map to added levels.
func TestPutAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 16, 17, 500, 5000} {
		for _, add := range []int{0, 1, 2, 40, 3000, 40_000} {
			want := map[string]int{}
			for i := range n {
				want[numberKey(i)] = i
			}
			m := build(want)
			before := maps.Clone(want)
			many := map[string]int{}
			for i := range add {
				switch i % 3 {
				case 0:
					many[numberKey(r.IntN(n+1))] = -i
				case 1:
					many[fmt.Sprintf("key-00003-%d", i)] = i
				default:
					many[fmt.Sprint(r.Uint64())] = i
				}
			}
			next := m.PutAll(pairs(many))
			checkMap(t, m, before)
			maps.Copy(want, many)
			checkMap(t, next, want)
		}
	}
}

func TestPutAllOfNothingIsTheSame(t *testing.T) {
	m := numbers(100)
	require.True(t, m.PutAll(nil).Same(m))
	require.Zero(t, Map[int]{}.PutAll(nil).Len())
}

// Each node is copied once: replacing every value costs less than two allocations per leaf.
func TestAllocationsOfPutAll(t *testing.T) {
	m := numbers(10_000)
	all := pairs(collect(m))
	require.Less(t, testing.AllocsPerRun(3, func() { m.PutAll(all) }), 10_000/4.0)
}
