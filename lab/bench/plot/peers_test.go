package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPage_HasTheTablesOfTheResults checks that the pages show the last results of make bench-peers
// and make bench-pekko.
func TestPage_HasTheTablesOfTheResults(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	for page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		want, err := withTables(root, page)
		require.NoError(t, err)
		require.Equal(t, string(want), string(text),
			"a table is out of date: run go run ./lab/bench/plot")
	}
	_, err := withTable([]byte("a page"), "peers.txt", "")
	require.ErrorIs(t, err, errNoMarks)
}

func TestHeapRow_ComparesTheLargerHeap(t *testing.T) {
	t.Parallel()
	h := heapRow{100, 250}
	at := func(reader float64) map[string]point {
		name := "BenchmarkPeers/of=concord/op=all/kind=register/elems=0/keys=20000/size=100/callers=64"
		return map[string]point{
			name: {metrics: map[string]float64{"heap-B/key": 240, "reader-heap-B/key": reader}}}
	}
	require.Equal(t, "| register of 100 bytes, 20,000 of them | 240 / 250 B | – | ≤ 250 B | met |\n", h.line(at(250)))
	require.Contains(t, h.line(at(251)), "**missed**")
	require.Contains(t, h.line(nil), "not measured")
}

func TestTakeOverRow_ComparesTheLongest(t *testing.T) {
	t.Parallel()
	at := func(longest float64) map[string]point {
		m := map[string]float64{"s-to-host": 3.5, "min-s-to-host": 3, "max-s-to-host": longest}
		return map[string]point{"BenchmarkPeers/of=concord/op=takeover/seconds=3": {metrics: m}}
	}
	require.Equal(t, "| timeout of 3 s | 3.5 s (3.0 to 4.0) | – | ≤ 4.0 s | met |\n",
		takeOverRows[0].line(at(4.03)))
	require.Contains(t, takeOverRows[0].line(at(4.04)), "**missed**")
	require.Contains(t, takeOverRows[0].line(nil), "not measured")
}

// TestLessRow_ComparesWithPekko checks the rows of moves: a zero is a figure too, and a row without
// a goal has no verdict.
func TestLessRow_ComparesWithPekko(t *testing.T) {
	t.Parallel()
	at := func(concord, pekko float64) map[string]point {
		of := func(n float64) point {
			return point{metrics: map[string]float64{"dark-ms": n, "min-dark-ms": n - 1,
				"max-dark-ms": n + 30, "still-ms": 2, "lost": n - 12}}
		}
		return map[string]point{"BenchmarkPeers/of=concord/" + moves: of(concord),
			"BenchmarkPeers/of=pekko/" + moves: of(pekko)}
	}
	dark, still, lost := lessRows[1], lessRows[2], lessRows[3]
	require.Equal(t, "| longest time without an answer while a shard of 1,000 entities moves "+
		"| 12.0 ms (11.0 to 42.0) | 13.2 ms (12.2 to 43.2) | – | met |\n", dark.line(at(12, 13.2)))
	require.Contains(t, dark.line(at(13.3, 13.2)), "**missed**")
	require.Contains(t, dark.line(nil), "| – | – | – | not measured |")
	require.Contains(t, still.line(at(13, 12)), "| 2.0 ms | 2.0 ms | – |  |")
	require.Contains(t, lost.line(at(12, 19)), "| 0 | 7 | – | met |")
	require.Contains(t, lost.line(at(12, 12)), "| 0 | 0 | – | met |")
	require.Contains(t, lost.line(at(13, 12)), "| 1 | 0 | – | **missed** |")
}

func TestMergesTable_HasBothSides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "merges.txt")
	require.NoError(t, os.WriteFile(file, []byte(`# a day
BenchmarkPekko_ORSetMerge/sameNode/elems=1 5 610 ns/op 30.4 error-ns/op
BenchmarkPekko_ORSetMerge/sameNode/elems=10 5 520 ns/op 30 error-ns/op
BenchmarkPeers_ORSetMerge/sameNode/elems=10-2 1000 1040 ns/op 1104 B/op 6 allocs/op
BenchmarkPeers_ORSetMerge/sameNode/elems=10-2 1000 1300 ns/op 1104 B/op 6 allocs/op
BenchmarkPeers_ORSetMerge/sameNode/elems=10-2 1000 900 ns/op 1104 B/op 6 allocs/op
`), 0o600))
	table, err := mergesTable(file)
	require.NoError(t, err)
	require.Equal(t, `a day.

| | elements | Pekko | here | Pekko's time to ours | bytes, allocations here |
|---|---|---|---|---|---|
| two adds, then merge with the state before | 10 | 520 ns | 1.04 µs | 0.50 | 1104 B, 6 |
`, table)
}

func TestRow_ComparesWithItsGoals(t *testing.T) {
	t.Parallel()
	r := row{title: "get", work: "op=get", pekko: 1.3, bare: 0.8, rate: 1000, bytes: 2}
	rates := func(concord, pekko, bare, sent float64) map[string]point {
		at := map[string]point{}
		for of, rate := range map[string]float64{"concord": concord, "pekko": pekko, "bare": bare} {
			at["BenchmarkPeers/of="+of+"/op=get"] = point{metrics: map[string]float64{
				"ops/s": rate, "min-ops/s": rate / 2, "max-ops/s": rate * 2, "cpu-ns/op": 2500,
				"sent-B/op": sent,
				"min-load":  1, "max-load": 2.5, "min-others-cpus": 0, "max-others-cpus": 0.25,
			}}
		}
		return at
	}
	require.Equal(t, "| get | 13,000/s, 2.5 µs | 10,000/s, 2.5 µs | 12,300/s, 2.5 µs "+
		"| 1.30 | 1.05 | 1.3 × Pekko, 0.8 × bare, 1,000/s, ≤ 2 B: met |\n",
		r.line(rates(13_000, 10_000, 12_345, 2)))
	for name, at := range map[string]map[string]point{
		"below Pekko":    rates(12_999, 10_000, 10_000, 2),
		"below bare":     rates(13_000, 10_000, 16_300, 2),
		"below the rate": rates(999, 10, 10, 2),
		"too many bytes": rates(13_000, 10_000, 12_345, 2.01),
	} {
		require.Contains(t, r.line(at), "**missed**", name)
	}
	incomplete := rates(13_000, 10_000, 12_345, 2)
	delete(incomplete, "BenchmarkPeers/of=pekko/op=get")
	require.Contains(t, r.line(incomplete), "| – | 12,300/s")
	require.Contains(t, r.line(incomplete), "not measured",
		"without Pekko nothing is said about a goal that compares with it")
}

// TestSeries_TakesWholeParts checks that a line of one size does not take the points of another
// that begins with the same digits.
func TestSeries_TakesWholeParts(t *testing.T) {
	t.Parallel()
	name := "BenchmarkPeers/of=bare/op=get/keys=10/callers=64/"
	require.True(t, containsAll(name, []string{"/of=bare/", "/callers=64/"}))
	require.False(t, containsAll(name, []string{"/of=bare/", "/keys=1/"}))
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{0: "0", 0.123456: "0.123", 999: "999", 999.9: "1,000",
		12_345: "12,300", 14_556_337: "14,600,000"} {
		require.Equal(t, want, grouped(n))
	}
}
