//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain runs a member if a test has started this process as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestWork_IsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	works := slices.Concat(cases(), heaps())
	for _, kind := range gridKinds() {
		for _, w := range grid(kind, manyKeys) {
			if !slices.Contains(works, w) { // both tables have a few
				works = append(works, w)
			}
		}
	}
	for _, w := range works {
		read, err := parseWork(w.arguments())
		require.NoError(t, err)
		require.Equal(t, w, read)
		require.False(t, names[w.String()], "%v is measured twice", w)
		names[w.String()] = true
	}
	for _, bad := range []string{
		"", "op=get", "op=get kind=list elems=0 keys=1 size=0 callers=1",
		"op=get kind=counter elems=0 keys=0 size=0 callers=1",
		"op=get kind=set elems=0 keys=1 size=10 callers=1",
		"op=get kind=register elems=0 keys=1 size=9 callers=1",
	} {
		_, err := parseWork(bad)
		require.ErrorContains(t, err, "work ", bad)
	}
}

func TestResult_LineHasMedianAndSpread(t *testing.T) {
	t.Parallel()
	r := result{of: "bare", name: cases()[0].String()}
	for _, rate := range []float64{300, 100, 200} {
		r.runs = append(r.runs, figure{"ops/s": rate, "cpu-ns/op": 10 * rate})
	}
	require.Equal(t, "BenchmarkPeers/of=bare/op=get/kind=counter/elems=0/keys=1/size=0/callers=1 3"+
		" 200 ops/s 100 min-ops/s 300 max-ops/s 2000 cpu-ns/op 1000 min-cpu-ns/op 3000 max-cpu-ns/op", r.line())
	for _, lost := range []float64{2, 0, 1} {
		r.runs = append(r.runs, figure{"lost": lost})
	}
	require.Contains(t, r.line(), " 3 lost")
	r.runs = r.runs[:2]
	median, _, _, ok := r.spread("ops/s")
	require.True(t, ok)
	require.InDelta(t, 200, median, 0)
	_, _, _, ok = r.spread("p50-ns")
	require.False(t, ok, "nothing is said about what was not measured")
}

func TestNumbered_BeginsWithItsNumber(t *testing.T) {
	t.Parallel()
	for _, size := range []int{digits, 11, 2345} {
		text := numbered(1234567, size)
		require.Len(t, text, size)
		require.Equal(t, 1234567, numberOf(text))
	}
	require.Zero(t, numberOf(""))
}

func TestBare_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	n, kind, key, payload := decodeBare(encodeBare(1<<40, 's', "key", "element"))
	require.Equal(t, []any{uint64(1 << 40), byte('s'), "key", "element"},
		[]any{n, kind, key, payload})
}

// TestDriver_MeasuresProcesses runs one short round of a few workloads on real processes, and reads
// its lines.
func TestDriver_MeasuresProcesses(t *testing.T) {
	t.Parallel()
	o := options{systems: []string{"concord", "bare"}, rounds: 1, each: 10 * time.Millisecond,
		updates: 200, shared: true, progress: io.Discard}
	o.works = []work{
		{get, "counter", 0, 1, 0, 1},
		{majority, "register", 0, 2, 100, 4},
		{spread, "set", 10, 3, digits, 0},
		{spread, "counter", 0, 7, 0, 4},
		{directUpdate, "counter", 0, 1, 0, 2},
	}
	o.heaps = []work{{all, "register", 0, 300, 100, 4}}
	var table strings.Builder
	text, err := o.measure(&table)
	require.NoError(t, err)
	for _, w := range o.works {
		for _, of := range o.systems {
			name := fmt.Sprintf("BenchmarkPeers/of=%s/%v 1 ", of, w)
			require.Equal(t, applies(of, w), strings.Contains(string(text), name), name)
		}
	}
	require.Contains(t, string(text),
		"BenchmarkPeers/of=concord/op=all/kind=register/elems=0/keys=300/size=100/callers=4 1 ")
	require.NotContains(t, string(text), "of=bare/op=all")
	require.Contains(t, string(text), "the shared loopback interface")
	require.NotContains(t, string(text), " 0 ops/s")
	require.Equal(t, len(o.works)+1, strings.Count(table.String(), "\n"))
}

// TestLongest_IsOfTheTimeThatIsAskedFor checks that a time between two answers counts as a whole if
// it ends from begin to end, in whatever order answers were recorded.
func TestLongest_IsOfTheTimeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	answers := []time.Time{at(3), at(0), at(1), at(60), at(10), at(61), at(100)}
	for _, c := range []struct{ begin, end, want int }{
		{0, 1, 1}, {0, 3, 2}, {0, 9, 2}, {0, 10, 7}, {60, 60, 50}, {11, 62, 50}, {61, 99, 1},
		{0, 100, 50}, {62, 100, 39}, {62, 99, 0}, {-9, 0, 0},
	} {
		require.Equal(t, time.Duration(c.want)*time.Millisecond,
			longest(answers, at(c.begin), at(c.end)), "from %d to %d", c.begin, c.end)
	}
	require.Zero(t, longest(nil, zero, at(9)))
}

// answers is an entity whose requests are answered as a function says.
type answers struct {
	entity

	of func(n int64) (int64, error)
	n  *atomic.Int64
}

func (a answers) ask(time.Duration) (int64, error) { return a.of(a.n.Add(1)) }

func newAnswers(of func(n int64) (int64, error)) answers {
	return answers{of: of, n: &atomic.Int64{}}
}

// TestMoving_FailsWithALostRequest checks that a move fails if one of its requests is not answered,
// or if it cannot be requested.
func TestMoving_FailsWithALostRequest(t *testing.T) {
	t.Parallel()
	errLost := errors.New("no answer came")
	var home atomic.Int64
	ok := func(int64) (int64, error) { return home.Load(), nil }
	m := &moving{allocate: func(_ context.Context, member int) error {
		home.Store(int64(member))
		return nil
	}, entities: []entity{newAnswers(ok)}}
	answer, err := m.times(3, 1, 2*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, int64(2), home.Load(), "0, then 1, 2, 1 and 2")
	require.Regexp(t, `^done n=3( still\d=\d+ dark\d=\d+ lost\d=0){3}$`, answer)

	m.entities[0] = newAnswers(func(n int64) (int64, error) {
		if n == 3 { // after that of times and that of counted
			return 0, errLost
		}
		return ok(n)
	})
	_, err = m.times(1, 1, time.Millisecond)
	require.ErrorIs(t, err, errLost)
	require.ErrorContains(t, err, "a move to member 1: 1 of ")

	m.entities[0] = newAnswers(func(n int64) (int64, error) { return n, nil })
	_, err = m.times(1, 1, time.Millisecond)
	require.ErrorContains(t, err, "not all entities are at member 1")

	m.entities[0] = newAnswers(ok)
	m.allocate = func(context.Context, int) error { return errLost }
	_, err = m.times(1, 1, time.Millisecond)
	require.ErrorIs(t, err, errLost)
	_, err = m.times(1, 2, time.Millisecond)
	require.ErrorContains(t, err, "no shard of 2 entities moves")
	_, err = (*moving)(nil).times(1, 1, time.Millisecond)
	require.ErrorContains(t, err, "no shard of 1 entities moves")
}

// TestDriver_MeasuresEntities runs a short round of each workload of entities on real processes,
// moves a shard, and kills one of them.
func TestDriver_MeasuresEntities(t *testing.T) {
	t.Parallel()
	o := options{systems: []string{"concord", "bare"}, rounds: 1, each: 10 * time.Millisecond,
		losses: takeOvers[:1], shared: true, progress: io.Discard}
	text, err := o.measureShards()
	require.NoError(t, err)
	for _, of := range o.systems {
		for _, w := range shardWorks() {
			require.Contains(t, string(text), fmt.Sprintf("BenchmarkPeers/of=%s/%v 1 ", of, w))
		}
		require.Contains(t, string(text), "BenchmarkPeers/of="+of+"/op=idle 1 ")
	}
	require.Contains(t, string(text), "BenchmarkPeers/of=concord/op=move/entities=1000 2 ")
	require.NotContains(t, string(text), "of=bare/op=move")
	require.NotContains(t, string(text), " 0 dark-ms")
	require.Contains(t, string(text), " 0 lost\n")
	require.Contains(t, string(text), "BenchmarkPeers/of=concord/op=kill/seconds=3 1 ")
	require.NotContains(t, string(text), " 0 ops/s")
}

// TestDriver_MeasuresKeys runs a short round of the updates of two types on real processes, one of
// which only Concord has.
func TestDriver_MeasuresKeys(t *testing.T) {
	t.Parallel()
	o := options{systems: []string{"concord", "bare"}, rounds: 1, each: 10 * time.Millisecond,
		mostKeys: 500, shared: true, progress: io.Discard,
		only: regexp.MustCompile("kind=(set|record)/.*/callers=64$")}
	text, err := o.measureKeys()
	require.NoError(t, err)
	for _, name := range []string{
		"concord/op=update/kind=set/elems=10/keys=1/size=10/callers=64",
		"concord/op=direct-update/kind=set/elems=10/keys=100/size=10/callers=64",
		"concord/op=direct-update/kind=record/elems=0/keys=100/size=0/callers=64",
		"bare/op=update/kind=set/elems=10/keys=100/size=10/callers=64",
	} {
		require.Contains(t, string(text), "BenchmarkPeers/of="+name+" 1 ")
	}
	require.Contains(t, string(text), " peak-heap-B ")
	require.NotContains(t, string(text), "/keys=1000/")
	require.NotContains(t, string(text), "of=bare/op=direct")
	require.NotContains(t, string(text), "of=bare/op=update/kind=record")
}

// TestDriver_ReportsAMemberThatEnds checks that a failure names the workload, that the cluster is
// started anew, and that the driver ends.
func TestDriver_ReportsAMemberThatEnds(t *testing.T) {
	t.Parallel()
	o := options{systems: []string{"bare"}, rounds: 1, each: 10 * time.Millisecond,
		progress: io.Discard, works: cases()[:1]}
	b := newBench(o)
	defer b.close()
	require.NoError(t, b.start("bare"))
	require.NoError(t, b.clusters["bare"].members[0].cmd.Process.Kill())
	b.one("bare", o.works[0], 0)
	require.Len(t, b.failed, 1)
	require.ErrorContains(t, b.failed[0],
		"bare, op=get/kind=counter/elems=0/keys=1/size=0/callers=1, round 1")
	b.one("bare", o.works[0], 1)
	require.Len(t, b.failed, 1, "the cluster that was started anew works")
	require.Len(t, b.results, 1)
}

func TestStartCluster_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := startCluster("pekko", "", filepath.Join(t.TempDir(), "target"), "")
	require.ErrorContains(t, err, "the driver of Pekko is not built, see make bench-peers")
	_, err = startCluster("bare", "no-such-namespace", "", "")
	require.ErrorContains(t, err, "member 0 of bare")
}

func TestRunDriver_RejectsArguments(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		`no system "akka"`:             {"-of", "akka"},
		"no workload matches":          {"-case", "op=none"},
		"-rounds (0)":                  {"-rounds", "0"},
		`no workload matches "op=get"`: {"-sharding", "-case", "op=get"},
		`no workload matches "op=put"`: {"-keys", "-case", "op=put"},
		"error parsing regexp":         {"-case", "("},
		"no member 3": {"member", "-of", "bare", "-index", "3", "-ports",
			"1,2,3,4,5,6"},
		`ports "1,2"`:             {"member", "-of", "bare", "-ports", "1,2"},
		"no member 0 of \"none\"": {"member", "-of", "none", "-ports", "1,2,3,4,5,6"},
	} {
		require.ErrorContains(t, run(args), text)
	}
}
