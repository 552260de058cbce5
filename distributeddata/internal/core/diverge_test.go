package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// rot changes what a replica holds under a key. told says whether its fingerprint follows, as after
// a bug, or not, as when memory is corrupted.
func (l *lab) rot(name, key string, told bool, change func(causal.Store) causal.Store) {
	c := l.cores[name]
	h, _ := c.Keys().Get(key)
	next := change(h.Store)
	if told {
		var b history.KeyBuilder
		for path, e := range next.Prefix("") {
			for leaf := range e.All() {
				b.Add(key, causal.Atom{Path: path, Leaf: leaf})
			}
		}
		was := h
		h = b.Held()
		sum := hidden[history.Sum](&c.history, "sum")
		for i := range sum {
			sum[i] += sumOf(key, h)[i] - sumOf(key, was)[i]
		}
	}
	h.Store = next
	*hidden[history.Keys](&c.history, "keys") = c.Keys().With(
		func(yield func(string, history.Held) bool) { yield(key, h) })
}

func sumOf(key string, h history.Held) history.Sum {
	var b history.Builder
	b.Add(key, h)
	return b.State(causal.Vector{}).Sum
}

func dropFirst(s causal.Store) causal.Store {
	path, _ := s.At(0)
	return s.Drop(path)
}

func zombie(s causal.Store) causal.Store {
	path, e := s.At(0)
	return s.Insert(path+"z", e.First())
}

// filled returns a lab in which every replica holds n keys.
func filled(t *testing.T, n int, names ...string) *lab {
	l := newLab(t, names...)
	for i := range n {
		l.update(names[i%len(names)], Level{}, add(fmt.Sprintf("s%04d", i), "x"))
	}
	l.deliver(all)
	l.pass(2 * time.Second)
	return l
}

func (l *lab) equal(names ...string) {
	l.t.Helper()
	for _, n := range names[1:] {
		require.Equal(l.t, stateBytes(l.cores[names[0]]), stateBytes(l.cores[n]), "%s and %s",
			names[0], n)
		require.Equal(l.t, l.cores[names[0]].history.Sum(), l.cores[n].history.Sum())
	}
}

func TestDivergence_TheOutvotedReplicaMendsItself(t *testing.T) {
	for name, change := range map[string]func(causal.Store) causal.Store{"lost": dropFirst,
		"zombie": zombie} {
		t.Run(name, func(t *testing.T) {
			l := filled(t, 300, "a", "b", "c")
			want := stateBytes(l.cores["b"])
			l.rot("a", "s0007", true, change)
			l.pass(5 * time.Second)
			l.equal("a", "b", "c")
			require.Equal(t, want, stateBytes(l.cores["a"]))
			require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
			require.EqualValues(t, 1, l.cores["a"].Stats().Compared, "only what differs travels")
			require.Zero(t, l.cores["b"].Stats().Mended+l.cores["c"].Stats().Mended)
			require.Positive(t, l.cores["b"].Stats().Diverged, "an alarm at the others too")
			l.pass(3 * time.Second)
			require.EqualValues(t, 1, l.cores["a"].Stats().Mended, "once")
		})
	}
}

func TestDivergence_CorruptedMemoryIsFoundByScrubbing(t *testing.T) {
	l := filled(t, 300, "a", "b", "c")
	want := stateBytes(l.cores["b"])
	l.rot("a", "s0007", false, zombie)
	l.pass(10 * time.Second)
	require.EqualValues(t, 1, l.cores["a"].Stats().Corrupted)
	require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
	require.Equal(t, want, stateBytes(l.cores["a"]))
}

func TestDivergence_LargeKeyIsScrubbedInParts(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	var all []op
	for i := range 5000 {
		all = append(all, add("s", fmt.Sprintf("element-%04d", i)))
	}
	l.update("a", Level{}, all...)
	l.pass(2 * time.Second)
	want := stateBytes(l.cores["b"])
	for range 2 { // the next round of scrubbing begins
		l.cores["a"].history.Scrub()
	}
	l.rot("a", "s", false, func(s causal.Store) causal.Store {
		path, _ := s.At(4000)
		return s.Drop(path)
	})
	l.tick(time.Second)
	require.Zero(t, l.cores["a"].Stats().Corrupted, "not in one go")
	for i := range 10 {
		l.update("b", Level{}, add("s", fmt.Sprint("more-", i))) // continues meanwhile
		l.tick(time.Second)
	}
	l.pass(5 * time.Second)
	require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
	require.NotEqual(t, want, stateBytes(l.cores["b"]))
	l.equal("a", "b", "c")
}

func TestDivergence_OfTwoTheYoungerYields(t *testing.T) {
	for _, bad := range []string{"a", "b"} {
		l := filled(t, 40, "a", "b")
		l.rot(bad, "s0007", true, dropFirst)
		l.pass(5 * time.Second)
		l.equal("a", "b")
		require.Zero(t, l.cores["a"].Stats().Mended)
		require.EqualValues(t, 1, l.cores["b"].Stats().Mended, "b started later")
	}
}

// A replica can be mended while it is in use: whatever it did or received since its peer made the
// answer stays.
func TestDivergence_MendingKeepsWhatCameMeanwhile(t *testing.T) {
	l := filled(t, 100, "a", "b", "c")
	l.rot("a", "s0007", true, dropFirst)
	for range 3 {
		l.beat(l.order...)
		l.deliver(of(wire.ReplicatorBeat))
	}
	require.True(t, l.cores["a"].in.Busy())
	require.True(t, l.cores["a"].in.Content().whole)
	l.deliver(of(wire.ReplicatorRequest)) // the answer is made now
	l.update("a", Level{}, add("s0001", "own"), remove("s0004", "x"))
	l.update("b", Level{}, add("s0002", "other"))
	l.deliver(all)
	l.pass(4 * time.Second)
	require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
	l.equal("a", "b", "c")
	got := l.text("a")
	require.Contains(t, got, "s0001/own=1\n")
	require.Contains(t, got, "s0002/other=1\n")
	require.Contains(t, got, "s0007/x=1\n")
	require.NotContains(t, got, "s0004/")
}

// A member that missed more than the log holds is sent only the keys that differ, including those
// that only it has.
func TestBulk_SendsOnlyWhatDiffers(t *testing.T) {
	l := filled(t, 1000, "a", "b", "c")
	l.step("b", View{})
	l.step("a", View{})
	l.update("b", Level{}, add("s0003", "y"), add("snew", "x"), op{kind: opDelete, key: "s0500"})
	l.update("a", Level{}, add("s0004", "mine"), add("sown", "x"))
	l.box = nil
	l.cutLogs("b")
	l.cutLogs("a")
	bytes := 0
	l.see("a", "b")
	l.see("b", "a")
	for range 6 {
		l.beat("a", "b")
		for {
			mails := l.take(all)
			if len(mails) == 0 {
				break
			}
			for _, m := range mails {
				bytes += len(m.send.Payload)
				l.hand(m)
			}
		}
	}
	l.equal("a", "b")
	require.EqualValues(t, 1, l.cores["a"].Stats().Compared)
	require.Less(t, bytes, 8000, "of about 40,000 in full")
	got := l.text("a")
	require.Contains(t, got, "snew/x=1\n")
	require.Contains(t, got, "s0004/mine=1\n")
	require.NotContains(t, got, "s0500/")
}

// While a comparison is in flight, a key that was found equal changes: a late push adds what the
// answer has already removed. The answer is completed from the copy that was compared [R22].
func TestBulk_SkippedKeyChangesBeforeAdoption(t *testing.T) {
	l := filled(t, 200, "a", "b")
	l.update("b", Level{}, add("s9999", "x"))
	late := l.take(of(wire.ReplicatorPush))
	l.update("b", Level{}, remove("s9999", "x"), add("s0001", "y"))
	l.box = nil
	l.cutLogs("b")
	l.beat("b")
	l.deliver(of(wire.ReplicatorBeat))
	l.deliver(of(wire.ReplicatorRequest))
	l.deliver(func(m mail) bool {
		return m.send.Manifest == wire.ReplicatorCompare || m.send.Manifest == wire.ReplicatorCells
	})
	require.True(t, l.cores["a"].in.Busy())
	l.hand(late...)
	got := l.text("a")
	require.Contains(t, got, "s9999/x=1\n")
	l.deliver(all)
	require.EqualValues(t, 1, l.cores["a"].Stats().Compared)
	l.equal("a", "b")
}

// A state completed from a comparison must match its fingerprint; otherwise everything is sent.
func TestBulk_WrongComparisonIsNoticed(t *testing.T) {
	l := filled(t, 100, "a", "b")
	l.step("b", View{})
	l.update("b", Level{}, add("s0003", "y"))
	l.cutLogs("b")
	l.box = nil
	l.see("b", "a")
	l.beat("b", "a")
	l.deliver(of(wire.ReplicatorBeat))
	l.cores["a"].in.Content().copied.Sum = history.Sum{1, 1}
	l.pass(8 * time.Second)
	require.Positive(t, l.cores["a"].Stats().Malformed)
	require.EqualValues(t, 1, l.cores["a"].Stats().Bulks)
	require.Zero(t, l.cores["a"].Stats().Compared)
}
