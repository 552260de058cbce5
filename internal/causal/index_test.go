package causal

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// indexOf computes the index from its definition.
func indexOf(s Store) []string {
	out := map[string]struct{}{}
	for path := range s.Prefix("") {
		outer(path, func(depth, end int) bool {
			out[indexKey(depth, path[:end])] = struct{}{}
			return true
		})
	}
	return slices.Sorted(maps.Keys(out))
}

func requireIndex(t require.TestingT, s Store) {
	have := []string(nil)
	for k := range s.index.All() {
		have = append(have, k)
	}
	require.Equal(t, indexOf(s), have)
}

// drawPath draws the path of an atom in nested maps and records.
func drawPath(t *rapid.T) (path string) {
	for range rapid.IntRange(0, 3).Draw(t, "depth") {
		kind := rapid.SampledFrom([]Kind{ORMap, ORMap, Record}).Draw(t, "kind")
		key := rapid.SampledFrom([]string{"", "a", "a\x00", "b"}).Draw(t, "key")
		path = string(AppendKey([]byte(path+string([]byte{byte(MakeTag(kind, String))})),
			[]byte(key)))
	}
	switch rapid.IntRange(0, 2).Draw(t, "value") {
	case 0:
		return path + string([]byte{byte(MakeTag(EWFlag, Custom))})
	case 1:
		return path + string([]byte{byte(MakeTag(ORSet, String))}) + rapid.SampledFrom(
			[]string{"x", "y"}).Draw(t, "element")
	}
	return SlotPath(path+string([]byte{byte(MakeTag(PNCounter, Custom))}),
		Replica(rapid.IntRange(1, 2).Draw(t, "replica")))
}

// However a store was made, its index is that of its paths, and CountChildren equals the number of
// children visited.
func TestIndex_FollowsThePaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s, other Store
		var seen, theirs Vector
		// Few paths, so that they collide.
		pool := rapid.SliceOfN(rapid.Custom(drawPath), 1, 4).Draw(t, "pool")
		set := string(AppendKey([]byte{byte(MakeTag(ORMap, String))}, []byte("k"))) + string(
			[]byte{byte(MakeTag(ORSet, String))})
		pool = append(pool, set+"x", set+"y", set+"z")
		for n := uint64(1); n <= 20; n++ {
			path, d := rapid.SampledFrom(pool).Draw(t, "path"), Dot{1, n}
			l := Leaf{Dot: d}
			if _, slot := SlotOwner(path); slot {
				l.Replica = 2
				l.Payload = Total{Since: 1, Plus: 1}.Payload()
			}
			switch cut := rapid.IntRange(0, len(path)).Draw(t, "cut"); rapid.IntRange(0, 7).Draw(
				t, "op") {
			case 0:
				s = s.Drop(path)
			case 1:
				s = s.DropPrefix(path[:cut])
			case 2:
				s = s.ResetPrefix(path[:cut], d)
			case 3:
				s = s.Clear(MakeVector(Dot{1, n - uint64(min(cut, int(n)))}))
			case 4:
				s, seen = Join(s, seen, other, theirs), seen.Join(theirs)
			case 5:
				other, theirs = s, seen
			default:
				s, seen = s.Put(path, l), seen.With(l.Dot)
			}
			requireIndex(t, s)
		}
		base := string([]byte{byte(MakeTag(ORMap, String))})
		children, paths := map[string]bool{}, 0
		for path := range s.Prefix(base) {
			if end := keyEnd(path, 1); !Tag(path[end]).Kind().single() {
				children[path[:end+1]] = true
			}
			paths++
		}
		require.Equal(t, len(children), s.CountChildren(base, 0, ORSet))
		require.Equal(t, paths, s.CountChildren(base, 0, EWFlag))
	})
}

func TestIndex_OfADecodedAndABuiltState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		for range rapid.IntRange(0, 40).Draw(t, "paths") {
			path := drawPath(t)
			l := Leaf{Dot: Dot{1, 1}}
			if owner, slot := SlotOwner(path); slot {
				l = Leaf{Dot{owner, 1}, Total{Since: 1, Plus: 1}.Payload()}
			}
			s = s.Put(path, l)
		}
		requireIndex(t, s)
		requireIndex(t, rebuilt(t, s, MakeVector(Dot{1, 1}, Dot{2, 1})))
		var b Builder
		for path, e := range s.Prefix("") {
			for l := range e.All() {
				require.True(t, b.Add(path, l))
			}
		}
		built := b.Store()
		requireIndex(t, built)
		requireIndex(t, built.Drop(drawPath(t)))
	})
}
