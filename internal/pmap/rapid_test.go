package pmap

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawKey draws keys of few letters, some of them long, so that they often collide, share prefixes
// and reach the byte limit.
func drawKey() *rapid.Generator[string] {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune{0, 'a', 'b', 'z'}), 0, 4, -1)
	return rapid.Custom(func(t *rapid.T) string {
		k := letters.Draw(t, "letters")
		n := rapid.SampledFrom([]int{0, 0, 0, 40, 200, 340, 520, 1100}).Draw(t, "length")
		return k + strings.Repeat("-", n)
	})
}

func TestRapidUpdates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[int]
		want := map[string]int{}
		i := 0
		put := func(t *rapid.T) {
			k := drawKey().Draw(t, "key")
			i++
			m = m.Put(k, i)
			want[k] = i
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":      put,
			"put more": put,
			"put many": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					put(t)
				}
			},
			"put all": func(t *rapid.T) {
				many := map[string]int{}
				for range rapid.IntRange(0, 60).Draw(t, "n") {
					i++
					many[drawKey().Draw(t, "key")] = i
				}
				m = m.PutAll(pairs(many))
				maps.Copy(want, many)
			},
			"delete": func(t *rapid.T) {
				k := drawKey().Draw(t, "key")
				m = m.Delete(k)
				delete(want, k)
			},
			"delete present": func(t *rapid.T) {
				if m.Len() == 0 {
					t.Skip()
				}
				k, _ := m.At(rapid.IntRange(0, m.Len()-1).Draw(t, "at"))
				m = m.Delete(k)
				delete(want, k)
			},
			"delete prefix": func(t *rapid.T) {
				p := drawKey().Filter(func(k string) bool { return len(k) > 1 }).Draw(t, "prefix")
				m, want = m.DeletePrefix(p), without(want, p)
			},
			"": func(t *rapid.T) { checkLong(t, m, want) },
		})
		checkQueries(t, m, want, drawKey().Draw(t, "query"))
	})
}

// Two maps are derived from one, each by its own edit script.
func TestRapidDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1500).Draw(t, "n")
		var b Builder[int]
		for i := range n {
			b.Add([]byte(numberKey(i)), i)
		}
		base := b.Map()
		left, right := edited(t, base), edited(t, base)
		got, want := diffs(left, right), naiveDiffs(collect(left), collect(right))
		if !slices.Equal(got, want) {
			t.Fatalf("%v, not %v", got, want)
		}
		k := numberKey(rapid.IntRange(0, 1600).Draw(t, "key"))
		p := k[:rapid.IntRange(0, len(k)).Draw(t, "length")]
		want = slices.DeleteFunc(want, func(c change) bool { return !strings.HasPrefix(c.k, p) })
		if got := diffsBelow(left, right, p); !slices.Equal(got, want) {
			t.Fatalf("below %q: %v, not %v", p, got, want)
		}
	})
}

func edited(t *rapid.T, m Map[int]) Map[int] {
	want := collect(m)
	for range rapid.IntRange(0, 30).Draw(t, "edits") {
		k := numberKey(rapid.IntRange(0, 1600).Draw(t, "key"))
		switch rapid.IntRange(0, 5).Draw(t, "edit") {
		case 0, 1:
			m = m.Delete(k)
			delete(want, k)
		case 2:
			p := k[:len(k)-rapid.IntRange(0, 3).Draw(t, "cut")]
			m, want = m.DeletePrefix(p), without(want, p)
		default:
			m = m.Put(k, -1)
			want = maps.Clone(want)
			want[k] = -1
		}
	}
	checkMap(t, m, want)
	return m
}
