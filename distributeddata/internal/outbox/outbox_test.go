package outbox

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

var epoch = time.Unix(1_700_000_000, 0)

func yes() bool { return true }
func no() bool  { return false }

// A burst shares a push after a pause; updates one by one are pushed as soon as the last push has
// been acknowledged; and a call that waits hurries, unless one before it waits already [R9].
func TestDue(t *testing.T) {
	var o Outbox
	now := epoch
	push := func(n uint64, events int) {
		_, some := o.Begin(now, n)
		require.True(t, some)
		o.Sent(events)
	}
	push(1, 1)
	require.Equal(t, now, o.Due(now, false, no), "few, and acknowledged")
	require.Equal(t, now.Add(Pause), o.Due(now, false, yes), "not acknowledged")
	require.Equal(t, now, o.Due(now, true, yes), "a call waits")
	push(1+Few+1, Few+1)
	require.Equal(t, now.Add(Pause), o.Due(now, false, no), "a burst")
	now = now.Add(Pause)
	require.Equal(t, now, o.Due(now, false, yes))
	before := now.Add(-time.Hour)
	require.Equal(t, before, o.Due(before, false, yes), "the clock was set")

	require.True(t, o.Hurries(5, 5), "it waits for an event that has not been pushed")
	require.False(t, o.Hurries(4, 4), "for one that is on its way")
	require.True(t, o.Hurries(4, 5), "only one push of its level is on its way")
	require.False(t, o.Hurries(1, 5), "two are")
}

func TestBegin_NothingIsPushedTwice(t *testing.T) {
	var o Outbox
	o.Gather(7)
	from, some := o.Begin(epoch, 3)
	require.True(t, some)
	require.Zero(t, from)
	require.Zero(t, o.Gathered())
	from, some = o.Begin(epoch, 3)
	require.False(t, some)
	require.EqualValues(t, 3, from)
	require.EqualValues(t, 3, o.Pushed())
}

// TestCauses_AgainstDefinition plays replicas that push and apply in random order. Whatever a push
// names, a receiver that has seen what is named, and all that this follows, has seen everything
// that the push follows [R8].
func TestCauses_AgainstDefinition(t *testing.T) {
	type push struct {
		from         causal.Replica
		n            uint64
		head, before causal.Vector
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		const members = 4
		var boxes [members]Outbox
		var seen [members]causal.Vector
		var at [members]map[int]bool // pushes that have been applied
		var pushes []push
		behind := map[causal.Dot]causal.Vector{} // what each event follows
		named := 0
		for i := range at {
			at[i] = map[int]bool{}
		}
		for range 60 {
			i := r.IntN(members)
			me := causal.Replica(i + 1)
			if r.IntN(2) == 0 {
				n := seen[i].Get(me) + 1
				before := seen[i]
				seen[i] = seen[i].Set(me, n)
				_, some := boxes[i].Begin(epoch, n)
				require.True(t, some)
				head := boxes[i].Causes(me, n, seen[i])
				named += head.Len()
				behind[causal.Dot{Replica: me, N: n}] = before
				at[i][len(pushes)] = true
				pushes = append(pushes, push{me, n, head, before})
				continue
			}
			for j, p := range pushes {
				base := p.head.Set(p.from, p.n-1)
				if at[i][j] || !base.Leq(seen[i]) {
					continue
				}
				require.True(t, p.before.Leq(seen[i]), "seed %d: %v names %v and follows %v, %v lacks some",
					seed, p.from, p.head, p.before, seen[i])
				at[i][j] = true
				seen[i] = seen[i].Set(p.from, p.n)
				boxes[i].Applied(base)
			}
		}
		require.NotZero(t, named)
	}
}

// After Again a push names everything.
func TestAgain(t *testing.T) {
	var o Outbox
	seen := causal.MakeVector(causal.Dot{Replica: 1, N: 1}, causal.Dot{Replica: 2, N: 5})
	require.Equal(t, 2, o.Causes(1, 1, seen).Len(), "the first names everything")
	seen = seen.Set(1, 2)
	require.Equal(t, 1, o.Causes(1, 2, seen).Len())
	o.Again()
	require.Positive(t, o.Gathered())
	require.Equal(t, 2, o.Causes(1, 3, seen.Set(1, 3)).Len())
}
