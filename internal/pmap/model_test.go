package pmap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// version is a map kept during the history, with its expected contents.
type version struct {
	m    Map[int]
	want map[string]int
}

type checkFunc func(t require.TestingT, m Map[int], want map[string]int)

// history runs random updates over a space of keys, alternating between mostly Put and mostly
// Delete, and returns the versions it kept.
func history(t *testing.T, r *rand.Rand, steps int, key func() string, check checkFunc) []version {
	var m Map[int]
	want := map[string]int{}
	var kept []version
	for i := range steps {
		k := key()
		puts := []int{80, 20, 95, 3}[i*4/steps]
		if r.IntN(100) < puts {
			m = m.Put(k, i)
			want[k] = i
		} else {
			_, had := want[k]
			next := m.Delete(k)
			require.Equal(t, !had, next.Same(m), "Same after Delete %q", k)
			delete(want, k)
			m = next
		}
		if r.IntN(steps/4) == 0 {
			p := k[:r.IntN(len(k)+1)]
			m, want = m.DeletePrefix(p), without(want, p)
			check(t, m, want)
		}
		if i%(steps/10) == 0 {
			kept = append(kept, version{m, maps.Clone(want)})
		}
		require.Equal(t, len(want), m.Len())
	}
	return append(kept, version{m, want})
}

// spaces returns generators of keys, sparse ones first.
func spaces(r *rand.Rand) map[string]func() string {
	return map[string]func() string{
		"few":  func() string { return fmt.Sprint(r.IntN(20)) },
		"some": func() string { return fmt.Sprint(r.IntN(300)) },
		"many": func() string { return fmt.Sprint(r.IntN(3000)) },
		"rising": func() func() string {
			i := 0
			return func() string { i++; return fmt.Sprintf("%08d", i-r.IntN(40)) }
		}(),
		"bytes": func() string { // empty keys, zero bytes, 0xff, keys that are prefixes of others
			b := make([]byte, r.IntN(6))
			for i := range b {
				b[i] = []byte{0, 0, 1, 'a', 0xff}[r.IntN(5)]
			}
			return string(b)
		},
		"shared": func() string {
			return strings.Repeat("p", 30) + string(rune('a'+r.IntN(4))) + strings.Repeat("q",
				longKey-34) + fmt.Sprint(r.IntN(200))
		},
		"long": func() string {
			k := fmt.Sprint(r.IntN(500))
			switch r.IntN(12) {
			case 0:
				return k + strings.Repeat("x", r.IntN(6000))
			case 1, 2:
				return k + strings.Repeat("y", r.IntN(600))
			}
			return k
		},
	}
}

func TestHistoryAgainstModel(t *testing.T) {
	for name := range spaces(nil) {
		t.Run(name, func(t *testing.T) {
			check := checkMap
			if name == "long" {
				check = checkLong
			}
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 1))
				key := spaces(r)[name]
				kept := history(t, r, 3000, key, check)
				for _, v := range kept {
					checkVersion(t, v, kept, check)
				}
				last := kept[r.IntN(len(kept))]
				for range 10 {
					k := key()
					checkQueries(t, last.m, last.want, k)
					checkQueries(t, last.m, last.want, k[:r.IntN(len(k)+1)])
				}
			}
		})
	}
}

// checkVersion checks that later updates did not change v, that v can be built, and its differences
// to all other versions.
func checkVersion(t *testing.T, v version, kept []version, check checkFunc) {
	check(t, v.m, v.want)
	built := build(v.want)
	check(t, built, v.want)
	require.Empty(t, diffs(v.m, built))
	for _, o := range kept {
		want := naiveDiffs(v.want, o.want)
		require.Equal(t, want, diffs(v.m, o.m))
	}
}
