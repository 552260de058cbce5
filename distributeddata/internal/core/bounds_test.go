package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

func TestBounds_ReplicasOfAVector(t *testing.T) {
	full := make([]causal.Dot, bases.MaxReplicas)
	for i := range full {
		full[i] = causal.Dot{Replica: causal.Replica(i+1) << 40, N: 1}
	}
	whole := causal.MakeVector(full...)
	of := map[int]causal.Vector{bases.MaxReplicas: whole, bases.MaxReplicas - 1: whole.Set(
		full[bases.MaxReplicas-1].Replica, 0)}
	for _, test := range []struct {
		// base: entries of the base; more: entries added to it; others: entries that differ from
		// it.
		base, more, others int
		ok                 bool
	}{
		{bases.MaxReplicas - 1, 0, 1, true},
		{bases.MaxReplicas - 1, 1, 1, true},
		{bases.MaxReplicas, 0, 2, true},
		{bases.MaxReplicas - 1, 2, 0, false},
		{bases.MaxReplicas, 1, 0, false},
	} {
		known := func([]byte) (causal.Vector, bool) { return of[test.base], true }
		var ids, numbers []uint64
		for i := range test.others {
			ids, numbers = append(ids, uint64(full[i].Replica)), append(numbers, 7)
		}
		for i := range test.more {
			ids, numbers = append(ids, uint64(bases.MaxReplicas+i+1)<<40), append(numbers, 1)
		}
		v, err := bases.Vector(make([]byte, len(causal.Digest{})), ids, numbers, known)
		if !test.ok {
			require.ErrorContains(t, err, fmt.Sprintf("limit %d", bases.MaxReplicas))
			continue
		}
		require.NoError(t, err, "%+v", test)
		require.Equal(t, test.base+test.more, v.Len())
	}
}

// A value with many replicas can be transferred, and so can its delete, which follows all of them.
// Before, both failed from 4,097 replicas on.
func TestBounds_ReplicasOfOneValue(t *testing.T) {
	for _, n := range []int{4095, 4096, 4097} {
		l := newLab(t, "a", "b")
		l.large = true
		var s causal.Store
		past := departed(n)
		i := 0
		for d := range past.All() {
			s = s.Put(fmt.Sprintf("element %d", i),
				causal.Leaf{Dot: causal.Dot{Replica: d.Replica, N: 1}})
			i++
		}
		var h history.KeyBuilder
		for path, e := range s.Prefix("") {
			h.Add("key", causal.Atom{Path: path, Leaf: e.First()})
		}
		var state history.Builder
		state.Add("key", h.Held())
		a := l.cores["a"]
		joins(a, state.State(past))
		for range 3 {
			l.tick(a.cfg.BeatInterval)
		}
		b, ok := l.cores["b"].Keys().Get("key")
		require.True(t, ok, "%d replicas", n)
		require.True(t, l.cores["b"].Seen().Equal(past))
		require.Equal(t, a.history.Sum(), l.cores["b"].history.Sum())
		require.Equal(t, s.Len(), b.Len())

		l.id++
		l.step("a", Update{ID: l.id, Level: Level{Kind: All}, Deadline: l.now.Add(a.cfg.Patience),
			Modify: func(t *history.Txn) error {
				t.Clear("key")
				return nil
			}})
		for range 3 {
			l.tick(a.cfg.BeatInterval)
		}
		require.Nil(t, l.done[l.id].Short)
		require.Zero(t, l.cores["b"].Keys().Len())
		require.Zero(t, l.cores["b"].Stats().Malformed)
	}
}

func TestBounds_PushesThatWait(t *testing.T) {
	push := func(n uint64) *history.Delta {
		return &history.Delta{Base: causal.MakeVector(causal.Dot{Replica: 1, N: n}),
			Head: causal.MakeVector(causal.Dot{Replica: 1, N: n + 1})}
	}
	w := window{count: 2, bytes: 100}
	require.True(t, w.keep(push(1), 50, epoch))
	require.False(t, w.keep(push(2), 51, epoch), "bytes")
	require.True(t, w.keep(push(2), 50, epoch))
	require.True(t, w.keep(push(2), 50, epoch), "there already")
	require.False(t, w.keep(push(3), 0, epoch), "count")
}
