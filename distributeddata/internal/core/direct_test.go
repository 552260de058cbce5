package core

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// directly makes an update between two steps.
func (l *lab) directly(name string, ops ...op) (history.Opened, error) {
	return l.cores[name].Direct(l.now, ops[0].key,
		func(t *history.Txn) error { return perform(t, ops) })
}

// An update between two steps is answered at once, with a number of its own, and shows nowhere
// before the commit.
func TestDirect_IsCommittedLater(t *testing.T) {
	l := newLab(t, "a", "b")
	a := l.cores["a"]
	for i := range uint64(3) {
		o, err := l.directly("a", count("c", "k", 1))
		require.NoError(t, err)
		require.True(t, o.Changed)
		require.Equal(t, i+1, o.Seen.Get(a.Replica()))
	}
	require.Zero(t, a.Seen().Get(a.Replica()))
	require.EqualValues(t, 3, a.Uncopied())
	l.shows("a", "")
	l.step("a", End{})
	l.shows("a", "c/k=3\n")
	require.EqualValues(t, 3, a.Seen().Get(a.Replica()))
	l.step("a", Wake{})
	l.deliver(all)
	l.shows("b", "c/k=3\n")
	l.equal("a", "b")
}

// A function that fails, and a panic before the update is part of the open events, change nothing.
func TestDirect_AFailureChangesNothing(t *testing.T) {
	l := newLab(t, "a", "b")
	a, no := l.cores["a"], errors.New("no")
	_, err := l.directly("a", add("s", "x"))
	require.NoError(t, err)
	_, err = a.Direct(l.now, "s", func(t *history.Txn) error {
		require.NoError(l.t, perform(t, []op{add("s", "y"), add("s1", "y")}))
		return no
	})
	require.ErrorIs(t, err, no)
	l.fuse["a"] = 1
	require.Panics(t, func() { _, _ = l.directly("a", add("s", "z")) })
	_, err = l.directly("a", add("s", "w"))
	require.NoError(t, err)
	l.step("a", End{})
	l.shows("a", "s/w=1\ns/x=1\n")
	require.EqualValues(t, 2, a.Seen().Get(a.Replica()))
}

// A commit that panics is made when the replica resumes.
func TestDirect_APanicOfTheCommitLosesNothing(t *testing.T) {
	everywhere(t, func(l *lab) {
		fuse := l.fuse["b"]
		l.fuse["b"] = 0
		_, err := l.directly("b", add("s", "x"))
		require.NoError(l.t, err)
		l.fuse["b"] = fuse
		l.step("b", End{})
		l.step("b", Wake{})
		l.deliver(all)
		l.tick(1e9)
		l.shows("b", "s/x=1\n")
	})
}

// An update whose caller has its answer is kept however often its commit panics. One that nobody
// has been told of is given up, so that the replica goes on.
func TestDirect_AnAnsweredUpdateIsNeverGivenUp(t *testing.T) {
	for _, answered := range []bool{true, false} {
		l := newLab(t, "a", "b")
		a := l.cores["a"]
		if answered {
			_, err := l.directly("a", add("s", "x"))
			require.NoError(t, err)
		} else {
			l.quiet("a", add("s", "x"))
		}
		l.trap = func(place string) {
			if place == "before install" {
				panic(planted{place})
			}
		}
		require.Panics(t, func() { a.Step(l.now, End{}) })
		for range 3 {
			resume := func() { a.Resume(l.now, nil) }
			if !answered {
				require.NotPanics(t, resume)
				break
			}
			require.Panics(t, resume)
			require.EqualValues(t, 1, a.Uncopied())
		}
		l.trap = nil
		want := ""
		if answered {
			a.Resume(l.now, nil)
			want = "s/x=1\n"
		}
		l.shows("a", want)
		require.NoError(t, audit(a))
	}
}

// Too many open events must be committed before the next update.
func TestDirect_OpenEventsAreBounded(t *testing.T) {
	l := newLab(t, "a", "b")
	var err error
	n := 0
	for ; err == nil; n++ {
		require.LessOrEqual(t, n, maxOpen)
		_, err = l.directly("a", count("c", "k", 1))
	}
	require.ErrorIs(t, err, ErrStep)
	require.Greater(t, n, 100)
	l.step("a", Wake{})
	_, err = l.directly("a", count("c", "k", 1))
	require.NoError(t, err)
}

// Readers see an update between two steps before its commit. So it never joins the events of a
// step, which they must not see yet, and no later update shares its number.
func TestDirect_NeverJoinsWhatReadersMustNotSee(t *testing.T) {
	l := newLab(t, "a", "b")
	a := l.cores["a"]
	l.quiet("a", add("s", "x"))
	require.True(t, a.Hidden())
	_, err := l.directly("a", add("s", "y"))
	require.ErrorIs(t, err, ErrStep)
	l.step("a", End{})
	o, err := l.directly("a", add("s", "y"))
	require.NoError(t, err)
	l.quiet("a", add("s", "z"))
	l.step("a", End{})
	require.Equal(t, o.Seen.Get(a.Replica())+1, a.Seen().Get(a.Replica()))
	l.shows("a", "s/x=1\ns/y=1\ns/z=1\n")
}
