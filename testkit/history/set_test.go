package history_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/testkit/history"
)

type (
	sop   = history.SetOp[int]
	sres  = history.SetResult[int]
	sstep = step[sop, sres]
)

func adds(c, x int) sstep            { return begin[sres](c, sop{Add: true, Element: x}) }
func added(c int) sstep              { return end[sop](c, sres{}) }
func asks(c int) sstep               { return begin[sres](c, sop{}) }
func gets(c int, all ...int) sstep   { return end[sop](c, sres{Elements: all}) }
func list(l []int, want ...int) bool { return slices.Equal(l, want) }

func TestSet_Reports(t *testing.T) {
	both := []sstep{adds(0, 1), added(0), adds(0, 2), added(0)}
	for name, c := range map[string]struct {
		right func(history.SetReport[int]) bool
		steps []sstep
	}{
		"all there": {func(r history.SetReport[int]) bool {
			return r.Acknowledged == 2 && len(r.Lost)+len(r.Stale)+len(r.Phantoms)+len(
				r.Doubled) == 0
		}, []sstep{asks(1), gets(1, 1, 2)}},
		"lost": {func(r history.SetReport[int]) bool {
			return list(r.Lost, 2)
		}, []sstep{asks(1), gets(1, 1)}},
		"lost after it was seen": {func(r history.SetReport[int]) bool {
			return list(r.Lost, 2)
		}, []sstep{asks(1), gets(1, 1, 2), asks(1), gets(1, 1)}},
		"stale": {func(r history.SetReport[int]) bool {
			return list(r.Stale, 2) && len(r.Lost) == 0
		}, []sstep{asks(1), gets(1, 1), asks(1), gets(1, 2, 1)}},
		"phantom": {func(r history.SetReport[int]) bool {
			return list(r.Phantoms, 3)
		}, []sstep{asks(1), gets(1, 1, 2, 3)}},
		"read before it was added": {func(r history.SetReport[int]) bool {
			return list(r.Phantoms, 3)
		}, []sstep{asks(1), gets(1, 1, 2, 3), adds(0, 3), added(0)}},
		"doubled": {func(r history.SetReport[int]) bool {
			return list(r.Doubled, 1)
		}, []sstep{asks(1), gets(1, 1, 2, 1)}},
		"under way, seen or not": {func(r history.SetReport[int]) bool {
			return len(r.Lost)+len(r.Stale)+len(r.Phantoms) == 0
		}, []sstep{adds(0, 3), asks(1), gets(1, 1, 2), asks(1), gets(1, 1, 2, 3)}},
		"unknown, seen, then gone": {func(r history.SetReport[int]) bool {
			return list(r.Lost, 3)
		}, []sstep{adds(0, 3), asks(1), gets(1, 1, 2, 3), asks(1), gets(1, 1, 2)}},
		"unknown and never seen": {func(r history.SetReport[int]) bool {
			return r.Attempted == 3 && len(r.Lost) == 0
		}, []sstep{adds(0, 3), asks(1), gets(1, 1, 2)}},
		"acknowledged in the read": {func(r history.SetReport[int]) bool {
			return len(r.Lost) == 0
		}, []sstep{adds(0, 3), asks(1), added(0), gets(1, 1, 2)}},
		"order of elements is free": {func(r history.SetReport[int]) bool {
			return len(r.Lost) == 0
		}, []sstep{asks(1), gets(1, 2, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			if r := history.Set(record(append(both[:4:4], c.steps...)...)); !c.right(r) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestSet_LagIsTheTimeUntilSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r history.Recorder[sop, sres]
		r.Begin(0, sop{Add: true, Element: 1}).End(sres{})
		for _, seen := range [][]int{nil, nil, {1}} {
			time.Sleep(time.Second)
			r.Begin(1, sop{}).End(sres{Elements: seen})
		}
		if got := history.CheckSet(t, r.Operations(), false); got.Lag != 2*time.Second ||
			!list(got.Stale, 1) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCheckSet_Fails(t *testing.T) {
	lost := record(adds(0, 1), added(0), asks(1), gets(1))
	stale := record(adds(0, 1), added(0), asks(1), gets(1), asks(1), gets(1, 1))
	for name, c := range map[string]struct {
		ops   []history.Operation[sop, sres]
		fresh bool
		fails bool
	}{"lost": {lost, false, true}, "stale allowed": {stale, false, false},
		"stale": {stale, true, true}} {
		w := &witness{TB: t}
		history.CheckSet(w, c.ops, c.fresh)
		if (w.failed != "") != c.fails {
			t.Errorf("%s: %q", name, w.failed)
		}
	}
}
