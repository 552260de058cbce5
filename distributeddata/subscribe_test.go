package distributeddata

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

// subscribed returns subscriptions of one subscriber to n keys; told counts its notices.
func subscribed(n int) (s *subscriptions, pid *actor.PID, keys []string, told *int) {
	s, pid, told = newSubscriptions(), actor.NewPID("host", "subscriber"), new(int)
	for i := range n {
		keys = append(keys, fmt.Sprint("key-", i))
		s.add(keys[i], &subscriber{pid: pid, notice: func(_, _ causal.Store, _, _ causal.Vector, send func(any)) { *told++ }})
	}
	return s, pid, keys, told
}

func state(string) (causal.Store, causal.Vector) {
	return causal.Store{}.Put("p", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1}}), causal.Vector{}
}

func TestSubscriptions_EndOneByOneAndTogether(t *testing.T) {
	s, pid, keys, told := subscribed(10)
	other := actor.NewPID("host", "other")
	s.add(keys[3], &subscriber{pid: other, notice: func(_, _ causal.Store, _, _ causal.Vector, _ func(any)) { *told++ }})
	s.remove(keys[0], pid)
	s.remove(keys[0], pid)
	require.True(t, s.subscribed(pid))
	require.True(t, s.changed(keys))
	require.True(t, s.changed(keys))
	require.Len(t, s.dirty, 9)
	s.tell(1<<30, state, func(o *subscriber, now causal.Store, seen causal.Vector) { o.tell(now, seen, func(*actor.PID, any) {}) })
	require.Equal(t, 10, *told)
	require.False(t, s.changed(nil))
	s.removeAll(pid)
	require.False(t, s.subscribed(pid))
	require.True(t, s.subscribed(other))
	require.False(t, s.changed([]string{keys[1]}))
	require.True(t, s.changed([]string{keys[3]}))
	s.remove(keys[3], other)
	require.Empty(t, s.byKey)
	require.Empty(t, s.keys)
}

func TestSubscriptions_AreToldInStrides(t *testing.T) {
	s, _, keys, told := subscribed(10)
	tell := func(o *subscriber, now causal.Store, seen causal.Vector) { o.tell(now, seen, func(*actor.PID, any) {}) }
	s.changed(keys)
	require.True(t, s.tell(4, state, tell))
	require.Equal(t, 4, *told)
	s.changed(keys[3:5]) // the one has been told, and is again; the other has not
	require.Len(t, s.dirty, 7)
	require.True(t, s.tell(4, state, tell))
	require.False(t, s.tell(4, state, tell))
	require.Equal(t, 11, *told)
	require.Empty(t, s.dirty)
	require.Empty(t, s.noted)
}

// BenchmarkSubscriptions is what a change of every key costs one subscriber, with the end of each subscription.
func BenchmarkSubscriptions(b *testing.B) {
	for _, n := range []int{400, 4000, 40_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for b.Loop() {
				s, pid, keys, told := subscribed(n)
				s.changed(keys)
				s.tell(1<<30, state, func(o *subscriber, now causal.Store, seen causal.Vector) { o.tell(now, seen, func(*actor.PID, any) {}) })
				for _, k := range keys {
					s.remove(k, pid)
					s.subscribed(pid)
				}
				if *told != n {
					b.Fatalf("%d notices of %d", *told, n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
		})
	}
}
