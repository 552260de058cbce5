package causal

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naive is a store represented as the plain set of its atoms.
type naive map[naiveAtom]bool

type naiveAtom struct {
	path string
	leaf Leaf
}

func flat(s Store) naive {
	out := naive{}
	for path, e := range s.Prefix("") {
		for l := range e.All() {
			out[naiveAtom{Clone(path), l}] = true
		}
	}
	return out
}

// naiveJoin is the definition: atoms in both, or in one and not seen by the other.
func naiveJoin(a naive, seenA Vector, b naive, seenB Vector) naive {
	out := naive{}
	for x := range a {
		if b[x] || !seenB.Covers(x.leaf.Dot) {
			out[x] = true
		}
	}
	for x := range b {
		if a[x] || !seenA.Covers(x.leaf.Dot) {
			out[x] = true
		}
	}
	return out
}

// rebuilt returns an equal store that shares no memory.
func rebuilt(t require.TestingT, s Store, seen Vector) Store {
	b, err := AppendState(nil, s, seen)
	require.NoError(t, err)
	out, v, err := ParseState(b)
	require.NoError(t, err)
	require.True(t, v.Equal(seen))
	return out
}

// site is a replica of one store.
type site struct {
	id    Replica
	store Store
	seen  Vector
}

// event changes the store by random puts, drops and counts at a few paths.
func (n *site) event(t *rapid.T) Event {
	d := Dot{n.id, n.seen.Get(n.id) + 1}
	next := n.store
	for range rapid.IntRange(1, 3).Draw(t, "ops") {
		path := rapid.SampledFrom([]string{"@a", "@a", "@b", "@bc"}).Draw(t, "path")
		switch rapid.IntRange(0, 6).Draw(t, "op") {
		case 0:
			next = next.Drop(path)
		case 1:
			next = next.DropPrefix("@b")
		case 2:
			next = next.ResetPrefix("\x10", d)
		case 3, 4:
			slot := SlotPath("\x10", n.id)
			total := Total{Since: d.N}
			if e, ok := next.Get(slot); ok {
				total, _ = ParseTotal(e.First().Payload)
			}
			total.Plus++
			next = next.Put(slot, Leaf{d, total.Payload()})
		default:
			next = next.Put(path, Leaf{Dot: d})
		}
	}
	c, err := Between(n.store, next, d)
	require.NoError(t, err)
	e := Event{Dot: d, Deps: n.seen, Change: c}
	requireApplies(t, n, e, next)
	n.store, n.seen = next, n.seen.With(d)
	return e
}

// requireApplies checks that the change turns n's store into next, with and without sharing,
// directly and after encoding.
func requireApplies(t *rapid.T, n *site, e Event, next Store) {
	want, err := AppendState(nil, next, Vector{})
	require.NoError(t, err)
	sent, err := AppendEvent(nil, e)
	require.NoError(t, err)
	got, err := ParseEvent(sent)
	require.NoError(t, err)
	for _, base := range []Store{n.store, rebuilt(t, n.store, n.seen)} {
		for _, c := range []Change{e.Change, got.Change} {
			have, err := AppendState(nil, base.Apply(c, e.Deps, n.seen), Vector{})
			require.NoError(t, err)
			require.Equal(t, want, have)
		}
	}
}

// Joins of stores that share structure, joins of stores built separately, and the definition agree.
// Joins also agree with the application of events in any causal order.
func TestJoin_AgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := []*site{{id: 1}, {id: 2}, {id: 3}}
		var events []Event
		for range rapid.IntRange(10, 40).Draw(t, "steps") {
			a := sites[rapid.IntRange(0, 2).Draw(t, "at")]
			b := sites[rapid.IntRange(0, 2).Draw(t, "from")]
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				events = append(events, a.event(t))
			case 1:
				want := naiveJoin(flat(a.store), a.seen, flat(b.store), b.seen)
				joined := Join(a.store, a.seen, b.store, b.seen)
				require.Equal(t, want, flat(joined))
				apart := Join(rebuilt(t, a.store, a.seen), a.seen, rebuilt(t, b.store, b.seen),
					b.seen)
				require.Equal(t, want, flat(apart))
				if b.seen.Leq(a.seen) && len(want) == len(flat(a.store)) {
					require.True(t, joined.SameValue(a.store), "nothing new is a itself")
				}
				a.store, a.seen = joined, a.seen.Join(b.seen)
			case 2:
				if len(events) == 0 {
					continue
				}
				e := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
				if e.Deps.Leq(a.seen) { // covered or not
					before := flat(a.store)
					a.store = a.store.Apply(e.Change, e.Deps, a.seen)
					if a.seen.Covers(e.Dot) {
						require.Equal(t, before, flat(a.store),
							"an event applied before does nothing")
					}
					a.seen = a.seen.With(e.Dot)
				}
			}
		}
	})
}

func TestBetween_RefusesAtomsOfOtherEvents(t *testing.T) {
	theirs := Store{}.Put("@a", Leaf{Dot: Dot{2, 1}})
	_, err := Between(Store{}, theirs, Dot{1, 1})
	require.Error(t, err)
}

// A clear removes exactly what its origin had seen.
func TestApply_Clear(t *testing.T) {
	s := Store{}.Put("@a", Leaf{Dot: Dot{1, 1}}).Insert("@a", Leaf{Dot: Dot{2, 1}}).Put("@b",
		Leaf{Dot: Dot{1, 2}})
	got := s.Apply(Change{Clear: true}, MakeVector(Dot{1, 1}), MakeVector(Dot{1, 2}, Dot{2, 1}))
	require.Equal(t, naive{{"@a", Leaf{Dot: Dot{2, 1}}}: true, {"@b", Leaf{Dot: Dot{1, 2}}}: true},
		flat(got))
}

// Whatever deps covers, the rest is as it was, and so is the index.
func TestStore_ClearKeepsWhatIsNotCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		want := naive{}
		deps := MakeVector(Dot{1, rapid.Uint64Range(0, 6).Draw(t, "seen")})
		for range rapid.IntRange(0, 60).Draw(t, "atoms") {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			path := string(AppendKey([]byte("\xa1"), []byte(key))) + "\x41" +
				rapid.SampledFrom([]string{"x", "y", "z", "w"}).Draw(t, "element")
			s = s.Insert(path, Leaf{Dot: Dot{rapid.SampledFrom([]Replica{1, 2}).Draw(t, "replica"),
				rapid.Uint64Range(1, 6).Draw(t, "n")}})
		}
		var b Builder
		for path, e := range s.Prefix("") {
			for l := range e.All() {
				if !deps.Covers(l.Dot) {
					want[naiveAtom{path, l}] = true
					b.Add(path, l)
				}
			}
		}
		got := s.Clear(deps)
		require.Equal(t, want, flat(got))
		require.Equal(t, b.Store().CountChildren("\xa1", 0, ORSet),
			got.CountChildren("\xa1", 0, ORSet))
	})
}

func TestChildren_CountsKeysNotAtoms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		want := map[string]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "keys") {
			key := rapid.SampledFrom([]string{"", "a", "a\x00", "a\x00\x01", "\x00", "\xff", "b",
				"\x01"}).Draw(t, "key")
			p := string(AppendKey([]byte("\xa1"), []byte(key)))
			for i := range rapid.IntRange(1, 30).Draw(t, "atoms") {
				s = s.Put(p+"\x41"+string(rune('a'+i)), Leaf{Dot: Dot{1, 1}})
			}
			want[p] = true
			got, rest, ok := CutKey(p[1:] + "rest")
			require.True(t, ok)
			require.Equal(t, key+"|rest", got+"|"+rest)
		}
		s = s.Put("\xa2x", Leaf{Dot: Dot{1, 1}}).Put("\x41x", Leaf{Dot: Dot{1, 1}})
		var got []string
		for p := range s.Children("\xa1") {
			got = append(got, p)
		}
		require.Len(t, got, len(want))
		require.True(t, slices.IsSorted(got))
		require.Equal(t, got, ChangedChildren(Store{}, s, "\xa1"))
	})
}

func TestPath_EscapingKeepsTheOrderOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOf(rapid.ByteRange(0, 2)).Draw(t, "a"),
			rapid.SliceOf(rapid.ByteRange(0, 2)).Draw(t, "b")
		require.Equal(t, slices.Compare(a, b), slices.Compare(AppendKey(nil, a), AppendKey(nil, b)))
	})
}

func TestTotal_RoundTripAndStrictness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Total{rapid.Uint64().Draw(t, "since"), rapid.Uint64().Draw(t, "plus"),
			rapid.Uint64().Draw(t, "minus")}
		got, err := ParseTotal(want.Payload())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	for _, bad := range []string{"", "\x01\x01", "\x01\x01\x01\x01", "\x81\x00\x01\x01",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"} {
		_, err := ParseTotal(bad)
		require.Error(t, err, "%x", bad)
	}
}
