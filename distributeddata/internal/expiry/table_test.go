package expiry_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/expiry"
)

const ttl, skew, turn = 1000, 20, 50

func table(self string, others ...string) *expiry.Table {
	t := expiry.New(expiry.Config{Skew: skew, Turn: turn})
	t.View(self, others)
	return t
}

func due(t *expiry.Table, now int64) (keys []string) {
	for _, d := range t.Due(now, 1000, nil) {
		keys = append(keys, d.Key)
	}
	return keys
}

// expires returns the first moment at which the table of one member returns the entry.
func expires(t *expiry.Table, key string, from, to int64) int64 {
	for now := from; now <= to; now++ {
		if slices.Contains(due(t, now), key) {
			return now
		}
	}
	return -1
}

func TestTable_ExpiresAfterItsTimeAQuarterAndTheSkew(t *testing.T) {
	x := table("a")
	x.Put(100, "k", 100, ttl)
	require.Equal(t, int64(100+ttl+ttl/4+skew), expires(x, "k", 100, 5000))
	x.Put(2000, "k", 2000, ttl)
	x.Put(2500, "k", 2400, ttl) // another use
	require.Equal(t, int64(2400+ttl+ttl/4+skew), expires(x, "k", 2000, 5000))
	x.Put(5000, "k", 5000, 2*ttl)
	x.Put(5000, "k", 5000, ttl) // a shorter time to live
	require.Equal(t, int64(5000+ttl+ttl/4+skew), expires(x, "k", 5000, 9000))
	x.Drop("k")
	x.Drop("k")
	require.Zero(t, x.Len())
	_, ok := x.Next()
	require.False(t, ok)
}

// A wrong clock, or a hostile member, keeps an entry no longer than a use at this moment does.
func TestTable_StampOfTheFutureCountsAsOfNow(t *testing.T) {
	x := table("a")
	x.Put(100, "k", 1<<50, ttl)
	require.Equal(t, int64(100+ttl+ttl/4+skew), expires(x, "k", 100, 5000))
	x.Put(100, "l", 100+skew, ttl)
	x.Put(110, "l", 100+skew, ttl) // a clock within the skew: an unchanged stamp has no effect
	require.Equal(t, int64(100+ttl+ttl/4+skew), expires(x, "l", 100, 5000))
	require.True(t, expiry.Use{At: 1 << 50}.Stale(100, ttl, skew), "the next use replaces it")
	require.False(t, expiry.Use{At: 100 + skew}.Stale(100, ttl, skew),
		"a clock within the skew makes it")
}

// A stamp that no clock can have made may hide valid stamps, so each change counts as a use.
func TestTable_StampOfTheFutureHidesNoUse(t *testing.T) {
	x := table("a")
	x.Put(100, "k", 1<<50, ttl)
	x.Put(900, "k", 1<<50, ttl)
	require.Equal(t, int64(900+ttl+ttl/4+skew), expires(x, "k", 100, 5000))
}

// An entry without a stamp is due at once, to be given one.
func TestTable_WithoutAStampIsDueAtOnce(t *testing.T) {
	x := table("a")
	x.Put(100, "k", 0, ttl)
	require.Equal(t, []expiry.Due{{Key: "k", TTL: ttl}}, x.Due(100, 10, nil))
	x.Put(101, "k", 101, ttl)
	require.Empty(t, x.Due(101, 10, nil))
}

// An entry is due at one member first, and at each of the others one turn after the previous one,
// forever.
func TestTable_MembersTakeTurns(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	const at = 100 + ttl + ttl/4 + skew
	firsts := map[string]int{}
	for n := range 100 {
		key := fmt.Sprint("k", n)
		when := map[string]int64{}
		for i, id := range ids {
			others := slices.Delete(slices.Clone(ids), i, i+1)
			slices.Reverse(others) // the order of a view does not matter
			x := table(id, others...)
			x.Put(100, key, 100, ttl)
			when[id] = expires(x, key, at, at+10*turn)
			require.Equal(t, when[id]+int64(len(ids))*turn, expires(x, key, when[id]+1, at+10*turn),
				"it comes again")
		}
		var all []int64
		for _, id := range ids {
			if all = append(all, when[id]); when[id] == at {
				firsts[id]++
			}
		}
		slices.Sort(all)
		require.Equal(t, []int64{at, at + turn, at + 2*turn, at + 3*turn}, all)
	}
	for _, id := range ids {
		require.Greater(t, firsts[id], 10, "the work is spread")
	}
}

// Entries that wait for departed members are due once the view has changed.
func TestTable_ViewChangesTurns(t *testing.T) {
	x := table("a", "b", "c", "d")
	for n := range 100 {
		x.Put(0, fmt.Sprint(n), 1, ttl)
	}
	const at = 1 + ttl + ttl/4 + skew
	mine := len(due(x, at)) + len(due(x, at))
	require.Less(t, mine, 60)
	x.View("a", nil)
	require.Len(t, due(x, at+1), 100)
}

func TestTable_DueIsBoundedAndOrdered(t *testing.T) {
	x := table("a")
	for n := range 1000 {
		x.Put(int64(n), fmt.Sprintf("%03d", (n*7)%1000), int64(1+n), ttl)
	}
	for n := 0; n < 1000; n += 3 {
		x.Drop(fmt.Sprintf("%03d", n))
	}
	var all []string
	for {
		some := x.Due(1<<20, 10, nil)
		if len(some) == 0 {
			break
		}
		require.LessOrEqual(t, len(some), 10)
		for _, d := range some {
			all = append(all, d.Key)
			x.Drop(d.Key)
		}
	}
	require.Len(t, all, 666)
	require.Zero(t, x.Len())
}

func TestUse_RoundTripAndMerge(t *testing.T) {
	for _, u := range []expiry.Use{{}, {At: 1}, {At: 1 << 51}, {At: 7, TTL: expiry.MaxTTL, Set: 9},
		{TTL: 1}} {
		require.Equal(t, u, expiry.Parse(string(u.Append(nil))))
	}
	a, b := expiry.Use{At: 10, TTL: 5, Set: 3}, expiry.Use{At: 9, TTL: 7, Set: 4}
	require.Equal(t, expiry.Use{At: 10, TTL: 7, Set: 4}, a.Merge(b))
	require.Equal(t, a.Merge(b), b.Merge(a))
	require.Equal(t, a, a.Merge(expiry.Use{At: 2}), "a use says nothing of the time to live")
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(string(expiry.Use{At: 1 << 40, TTL: 60_000, Set: 1 << 40}.Append(nil)))
	f.Add("\x01\x02")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, payload string) {
		u := expiry.Parse(payload)
		if u.At < 0 || u.TTL < 0 || u.TTL > expiry.MaxTTL || u.Set < 0 {
			t.Fatal(u)
		}
		if again := expiry.Parse(string(u.Append(nil))); again.At != u.At || again.TTL != u.TTL {
			t.Fatal(u, again)
		}
	})
}

// A million entries take a hundred bytes each, plus their names.
func BenchmarkTable(b *testing.B) {
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("session-%016d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		x := table("a", "b", "c")
		for i, key := range keys {
			x.Put(int64(i), key, int64(i)+1, 3_600_000)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/entry")
}
