package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// A receiver rejects nothing that an update may do [R21]. The decoders and their bounds:
//
//	envelope       wire.MaxPayload: a larger push is not sent, its events are requested
//	push           key: MaxKey, path: causal.MaxPath, payload: none beyond the envelope
//	window         Config.WindowCount and WindowBytes: what does not fit is requested
//	part           Config.PartBytes
//	record         maxRecord: an event and a key are sent in pieces of about PartBytes and one atom
//	event, key     key: MaxKey, path: causal.MaxPath
//	atom           path: causal.MaxPath, payload: causal.MaxState
//	mark           path: causal.MaxPath
//	answer         transfer.MaxBytes
//	vector         bases.MaxReplicas
//	cells          transfer.CellsAtOnce, requested at most

// raw puts a payload at a path, or removes the content of the path if reset.
type raw struct {
	key, path string
	payload   string
	reset     bool
}

func (l *lab) raw(name string, facts ...raw) error {
	l.id++
	l.step(name, Update{ID: l.id, Modify: func(t *history.Txn) error {
		for _, f := range facts {
			if f.reset {
				t.Put(f.key, t.Get(f.key).ResetPrefix(f.path, t.Dot()))
			} else {
				t.Put(f.key, t.Get(f.key).Put(f.path,
					causal.Leaf{Dot: t.Dot(), Payload: f.payload}))
			}
		}
		return nil
	}})
	l.step(name, Wake{})
	return l.done[l.id].Err
}

// crosses plays changes at a, which b receives, and c only at the end; b then restarts. Both ways
// must lead to the same state.
func crosses(t *testing.T, play func(l *lab) error) {
	t.Helper()
	l := newLab(t)
	l.order, l.large = []string{"a", "b", "c"}, true
	for _, n := range l.order {
		l.start(n)
	}
	l.meet()
	require.NoError(t, play(l))
	for range 3 {
		l.rounds(1, without("c"))
	}
	l.equal("a", "b")
	l.meet()
	l.equal("a", "c")
	require.Positive(t, l.cores["c"].Stats().Deltas+l.cores["c"].Stats().Bulks)
	l.start("b")
	l.meet()
	l.equal("a", "b")
	require.Positive(t, l.cores["b"].Stats().Bulks)
	for _, n := range l.order {
		require.Zero(t, l.cores[n].Stats().Malformed, n)
		require.True(t, l.cores[n].Ready())
	}
}

// long returns a path or a name of the given size.
func long(i, size int) string { return fmt.Sprintf("%06d", i) + strings.Repeat("p", size-6) }

func many(n, size int, reset bool) (facts []raw) {
	for i := range n {
		facts = append(facts, raw{key: "k", path: long(i, size), reset: reset})
	}
	return facts
}

func TestTransfer_LargeEventsCross(t *testing.T) {
	value := strings.Repeat("v", 12<<20)
	for name, play := range map[string]func(l *lab) error{
		"three values of 12 MiB in one event": func(l *lab) error {
			return l.raw("a", raw{"k1", "p", value, false}, raw{"k2", "p", value, false},
				raw{"k3", "p", value, false})
		},
		"36 MB of elements in one event, removed in another": func(l *lab) error {
			if err := l.raw("a", many(600, 60_000, false)...); err != nil {
				return err
			}
			l.rounds(2, without("c"))
			return l.raw("a", many(600, 60_000, true)...)
		},
		"three concurrent values of 12 MiB under one path": func(l *lab) error {
			for _, n := range l.order {
				if err := l.raw(n, raw{"k", "p", value + n, false}); err != nil {
					return err
				}
			}
			l.take(of(wire.ReplicatorPush))
			l.rounds(4, all)
			e, _ := l.cores["a"].Keys().Get("k")
			at, _ := e.Get("p")
			require.Equal(l.t, 3, at.Len())
			return l.raw("a", raw{"other", "p", "", false})
		},
		"36 MB of marks under one key": func(l *lab) error {
			var counts, resets []op
			for i := range 600 {
				counts = append(counts, count("c", long(i, 60_000), 1))
				resets = append(resets, drop("c", long(i, 60_000)))
			}
			l.update("b", Level{}, counts...)
			l.rounds(2, without("c"))
			l.update("a", Level{}, resets...)
			h, _ := l.cores["a"].Keys().Get("c")
			require.True(l.t, h.HasMarks())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { crosses(t, play) })
	}
}

func TestTransfer_SizesAroundEveryBound(t *testing.T) {
	value := func(n int) raw { return raw{"k", "p", strings.Repeat("v", n), false} }
	for name, play := range map[string]func(l *lab) error{
		"envelope": func(l *lab) error {
			for i := -70; i <= 10; i += 5 {
				f := value(wire.MaxPayload + i)
				f.key = fmt.Sprint("k", i)
				if err := l.raw("a", f); err != nil {
					return err
				}
			}
			return nil
		},
		"part": func(l *lab) error {
			for i := -70; i <= 10; i += 5 {
				f := value(64<<10 + i)
				f.key = fmt.Sprint("k", i)
				if err := l.raw("a", f); err != nil {
					return err
				}
			}
			return nil
		},
		"key, path, payload": func(l *lab) error {
			return l.raw("a", raw{strings.Repeat("k", history.MaxKey),
				strings.Repeat("p", causal.MaxPath),
				strings.Repeat("v", causal.MaxState), false})
		},
		"record": func(l *lab) error {
			f, g := value(causal.MaxState), value(causal.MaxState)
			g.path = "q"
			return l.raw("a", f, g)
		},
	} {
		t.Run(name, func(t *testing.T) { crosses(t, play) })
	}
}

func TestTransfer_WhatNoReceiverTakesIsRefused(t *testing.T) {
	l := newLab(t, "a", "b")
	for want, f := range map[string]raw{
		"513 bytes, over the limit of 512": {strings.Repeat("k", history.MaxKey+1),
			"p", "v", false},
		"not UTF-8":                    {"\xff", "p", "v", false},
		"path of 0 bytes, limit 65536": {"k", "", "v", false},
		"path of 65537 bytes, limit 65536": {
			"k", strings.Repeat("p", causal.MaxPath+1), "v", false},
		"element of 16777217 bytes, limit 16777216": {
			"k", "p", strings.Repeat("v", causal.MaxState+1), false},
	} {
		require.ErrorContains(t, l.raw("a", raw{"k0", "p", "v", false}, f), want)
	}
	require.Zero(t, l.cores["a"].Stats().Events)
	require.Zero(t, l.cores["a"].Keys().Len())
	l.tick(time.Second)
	l.equal("a", "b")
}
