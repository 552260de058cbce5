package pmap

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkMap checks all invariants of the structure, and that m equals want. It is for maps that
// never had a key longer than longKey: no leaf is small.
func checkMap(t require.TestingT, m Map[int], want map[string]int) {
	checkContent(t, m, want)
	if m.root != nil {
		checker{t, true}.node(m.root, "", nil, true)
	}
}

// longKey is the maximum length of keys for which two leaves, one of them small, always fit the
// byte limit when they share their elements evenly.
const longKey = maxLeafBytes / (maxLeaf + minLeaf)

// checkLong is like checkMap for maps that may have had long keys, which leave small leaves.
func checkLong(t require.TestingT, m Map[int], want map[string]int) {
	checkContent(t, m, want)
	if m.root != nil {
		checker{t, false}.node(m.root, "", nil, true)
	}
}

func checkContent(t require.TestingT, m Map[int], want map[string]int) {
	require.Equal(t, len(want), m.Len(), "Len")
	require.Equal(t, len(want) == 0, m.root == nil, "the empty map has no root")
	keys := slices.Sorted(maps.Keys(want))
	i := 0
	for k, v := range m.All() {
		if i == len(keys) || k != keys[i] || v != want[k] {
			require.Fail(t, "content", "element %d is %q, %d", i, k, v)
		}
		i++
	}
	require.Equal(t, len(keys), i, "elements of All")
}

type checker struct {
	t      require.TestingT
	filled bool // no leaf may be small
}

// node checks n, whose keys must be in [lo, *hi), and returns its height.
func (c checker) node(n *node[int], lo string, hi *string, root bool) int {
	c.keys(&n.packed, lo, hi)
	if n.leaf() {
		c.leaf(n, root)
		return 0
	}
	require.Empty(c.t, n.vals)
	require.Len(c.t, n.kids, n.len()+1)
	require.LessOrEqual(c.t, len(n.kids), maxInner)
	require.GreaterOrEqual(c.t, len(n.kids), 2)
	if !root {
		require.GreaterOrEqual(c.t, len(n.kids), minInner, "small inner node")
	}
	height, total := -1, 0
	for i, kid := range n.kids {
		from, to := lo, hi
		if i > 0 {
			from = n.key(i - 1)
		}
		if i < n.len() {
			sep := n.key(i)
			to = &sep
		}
		h := c.node(kid, from, to, false)
		require.True(c.t, height < 0 || height == h, "leaves at different depths")
		height = h
		total += kid.total()
	}
	require.Equal(c.t, total, n.n, "count")
	require.Less(c.t, height+1, maxDepth)
	return height + 1
}

func (c checker) keys(p *packed, lo string, hi *string) {
	for i := range p.len() {
		k := p.key(i)
		ok := k >= lo && (hi == nil || k < *hi) && (i == 0 || p.key(i-1) < k)
		require.True(c.t, ok, "key %q out of place", k)
	}
	require.Equal(c.t, len(p.text), int(p.start(p.len())), "length of the text")
}

func (c checker) leaf(n *node[int], root bool) {
	require.Len(c.t, n.vals, n.len())
	require.NotEmpty(c.t, n.vals)
	require.True(c.t, n.fits(0, n.len()), "overfull leaf: %d, %d bytes", n.len(), n.bytes())
	if !root && c.filled {
		require.GreaterOrEqual(c.t, n.len(), minLeaf, "small leaf")
	}
}

// change is the result of Diff for one key.
type change struct {
	k        string
	a, b     int
	aok, bok bool
}

func diffs(a, b Map[int]) []change {
	var got []change
	same := func(x, y int) bool { return x == y }
	Diff(a, b, same, func(k string, av int, aok bool, bv int, bok bool) bool {
		got = append(got, change{k, av, bv, aok, bok})
		return true
	})
	return got
}

// diffsBelow returns the differences of the keys that begin with p.
func diffsBelow(a, b Map[int], p string) (got []change) {
	same := func(x, y int) bool { return x == y }
	DiffPrefix(a, b, p, same, func(k string, av int, aok bool, bv int, bok bool) bool {
		got = append(got, change{k, av, bv, aok, bok})
		return true
	})
	return got
}

func naiveDiffs(a, b map[string]int) []change {
	var want []change
	for k, av := range a {
		if bv, ok := b[k]; !ok || av != bv {
			want = append(want, change{k, av, bv, true, ok})
		}
	}
	for k, bv := range b {
		if _, ok := a[k]; !ok {
			want = append(want, change{k, 0, bv, false, true})
		}
	}
	slices.SortFunc(want, func(x, y change) int { return strings.Compare(x.k, y.k) })
	return want
}

// checkQueries compares queries for k, as a key and as a prefix, with naive results.
func checkQueries(t require.TestingT, m Map[int], want map[string]int, k string) {
	v, ok := m.Get(k)
	w, wok := want[k]
	require.Equal(t, w, v)
	require.Equal(t, wok, ok)
	var prefixed, from []string
	for _, x := range slices.Sorted(maps.Keys(want)) {
		if strings.HasPrefix(x, k) {
			prefixed = append(prefixed, x)
		}
		if x >= k {
			from = append(from, x)
		}
	}
	require.Equal(t, prefixed, keysOf(m.Prefix(k)), "Prefix %q", k)
	require.Equal(t, from, keysOf(m.From(k)), "From %q", k)
	require.Equal(t, len(prefixed), m.CountPrefix(k), "CountPrefix %q", k)
	first, last, ok := m.Bounds(k)
	require.Equal(t, len(prefixed) > 0, ok, "Bounds %q", k)
	if ok {
		require.Equal(t, prefixed[0], first, "Bounds %q", k)
		require.Equal(t, prefixed[len(prefixed)-1], last, "Bounds %q", k)
	}
	for i := range from {
		at := len(want) - len(from) + i
		x, v := m.At(at)
		if x != from[i] || v != want[x] {
			require.Fail(t, "At", "%d is %q, not %q", at, x, from[i])
		}
	}
}

func keysOf(seq iter.Seq2[string, int]) []string {
	var keys []string
	for k := range seq {
		keys = append(keys, k)
	}
	return keys
}

func without(want map[string]int, prefix string) map[string]int {
	rest := maps.Clone(want)
	maps.DeleteFunc(rest, func(k string, _ int) bool { return strings.HasPrefix(k, prefix) })
	return rest
}

func build(want map[string]int) Map[int] {
	var b Builder[int]
	for _, k := range slices.Sorted(maps.Keys(want)) {
		b.Add([]byte(k), want[k])
	}
	return b.Map()
}

func pairs(of map[string]int) (out []Pair[int]) {
	for _, k := range slices.Sorted(maps.Keys(of)) {
		out = append(out, Pair[int]{k, of[k]})
	}
	return out
}

func requirePanics(t *testing.T, f func(), msg string) {
	t.Helper()
	require.PanicsWithValue(t, msg, f)
}
