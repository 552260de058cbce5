package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit"
)

// inboxes spawns a probe named "inbox" at every member.
func inboxes(t *testing.T, c *testkit.Cluster) *testkit.PerMember[*testkit.Probe] {
	return testkit.Each(c, func(m *testkit.Member) (*testkit.Probe, error) {
		p := testkit.NewProbe(t, m.System)
		_, err := m.System.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case actor.SystemMessage, actor.AutoReceiveMessage:
			default:
				ctx.Forward(p.PID())
			}
		}), "inbox")
		return p, err
	})
}

func inbox(c *testkit.Cluster, i int) *actor.PID {
	return actor.NewPID(c.Member(i).Address, "inbox")
}

// send sends numbers from member a to member b.
func send(c *testkit.Cluster, a, b int, numbers ...int64) {
	for _, n := range numbers {
		c.Member(a).System.Root.Send(inbox(c, b), wrapperspb.Int64(n))
	}
}

// got takes the numbers that a probe has received.
func got(c *testkit.Cluster, p *testkit.Probe) (out []int64) {
	c.Settle()
	for {
		n, ok := p.Poll()
		if !ok {
			return out
		}
		out = append(out, n.(*wrapperspb.Int64Value).Value)
	}
}

func TestCluster_CarriesAcrossAndAnswersComeBack(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		start := time.Now()
		in.At(0).Request(inbox(c, 1), wrapperspb.Int64(1))
		require.EqualValues(t, 1, testkit.Expect[*wrapperspb.Int64Value](in.At(1)).Value)
		require.Equal(t, 20*time.Millisecond, time.Since(start).Truncate(time.Millisecond))
		var seen []testkit.Packet
		c.Observe(func(p testkit.Packet) {
			if testkit.Of[*wrapperspb.Int64Value](p) {
				seen = append(seen, p)
			}
		})
		in.At(1).Reply(wrapperspb.Int64(2))
		require.EqualValues(t, 2, testkit.Expect[*wrapperspb.Int64Value](in.At(0)).Value)
		require.Len(t, seen, 1)
		require.Equal(t, []int{1, 0}, []int{seen[0].From, seen[0].To})
		require.Equal(t, in.At(0).PID().Id, seen[0].Target)
		require.False(t, seen[0].Lost)
	}, testkit.Latency(20*time.Millisecond, 0))
}

func TestCluster_CutsPartitionsAndHealing(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		c.Link(0, 1).Set(testkit.Faults{Cut: true})
		send(c, 0, 1, 1)
		send(c, 1, 0, 2)
		require.Empty(t, got(c, in.At(1)))
		require.Equal(t, []int64{2}, got(c, in.At(0)), "one way only")
		c.Cut(0, 1)
		send(c, 1, 0, 3)
		require.Empty(t, got(c, in.At(0)))
		c.Heal()
		c.Partition([]int{0, 1}, []int{2})
		send(c, 0, 1, 4)
		send(c, 0, 2, 5)
		send(c, 2, 1, 6)
		require.Equal(t, []int64{4}, got(c, in.At(1)))
		require.Empty(t, got(c, in.At(2)))
		c.Heal()
		send(c, 0, 2, 7)
		require.Equal(t, []int64{7}, got(c, in.At(2)))
	})
}

func TestCluster_FaultsOfLinks(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		numbers := make([]int64, 200)
		for i := range numbers {
			numbers[i] = int64(i)
		}
		c.SetAll(testkit.Faults{Loss: 0.5})
		send(c, 0, 1, numbers...)
		require.InDelta(t, 100, len(got(c, in.At(1))), 40)
		c.SetAll(testkit.Faults{Duplicate: 1})
		send(c, 0, 1, 1, 2)
		require.Equal(t, []int64{1, 1, 2, 2}, got(c, in.At(1)))
		c.SetAll(testkit.Faults{Jitter: time.Second})
		send(c, 0, 1, numbers...)
		require.Equal(t, numbers, got(c, in.At(1)), "jitter keeps the order")
		c.SetAll(testkit.Faults{Jitter: time.Second, Reorder: true})
		send(c, 0, 1, numbers...)
		mixed := got(c, in.At(1))
		require.False(t, slices.IsSorted(mixed))
		slices.Sort(mixed)
		require.Equal(t, numbers, mixed)
		c.Heal()

		j := c.Join()
		c.SetAll(testkit.Faults{Delay: time.Hour})
		require.Equal(t, time.Hour, c.Link(1, j.Index).Faults().Delay)
		require.Equal(t, time.Hour, c.Link(c.Join().Index, 0).Faults().Delay,
			"also for members to come")
	})
}

func TestCluster_Bandwidth(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		c.Link(0, 1).Set(testkit.Faults{Bandwidth: 1 << 20})
		start := time.Now()
		for range 10 {
			c.Member(0).System.Root.Send(inbox(c, 1), wrapperspb.Bytes(make([]byte, 1<<20)))
		}
		in.At(1).Within(time.Minute, func() { in.At(1).Receive(10) })
		require.InDelta(t, 10, time.Since(start).Seconds(), 0.1)
	})
}

func TestLink_NextIsForOneMessage(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		l := c.Link(0, 1)
		third := func(p testkit.Packet) bool {
			n, ok := p.Message.(*wrapperspb.Int64Value)
			return ok && n.Value == 3
		}
		lost := l.Next(third, testkit.Faults{Cut: true})
		double := l.Next(testkit.To("inbox"), testkit.Faults{Duplicate: 1})
		late := l.Next(testkit.Of[*wrapperspb.Int64Value], testkit.Faults{Delay: time.Second,
			Reorder: true})
		require.False(t, lost())
		send(c, 0, 1, 1, 2, 3, 4)
		require.Equal(t, []int64{1, 1, 4, 2}, got(c, in.At(1)))
		require.True(t, lost() && double() && late())
		l.Next(testkit.To("inbox"), testkit.Faults{Cut: true})
		c.Heal() // removes it again
		send(c, 0, 1, 5)
		require.Equal(t, []int64{5}, got(c, in.At(1)))
	})
}

func TestCluster_SameSeedSameHistory(t *testing.T) {
	history := func(seed uint64) (seen []string) {
		testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
			require.Equal(t, seed, c.Seed())
			in := inboxes(t, c)
			start := time.Now()
			c.SetAll(testkit.Faults{Loss: 0.2, Duplicate: 0.2, Jitter: time.Second, Reorder: true})
			for n := range int64(50) {
				send(c, 0, 1, n)
				c.Advance(100 * time.Millisecond)
				if v, ok := in.At(1).Poll(); ok {
					seen = append(seen, fmt.Sprint(time.Since(start),
						v.(*wrapperspb.Int64Value).Value))
				}
			}
		}, testkit.Seed(seed))
		return seen
	}
	require.Equal(t, history(7), history(7))
	require.NotEqual(t, history(7), history(8))
	t.Setenv("TESTKIT_SEED", "9")
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		require.EqualValues(t, 9, c.Seed())
	}, testkit.Seed(1))
}

func TestMember_FreezeHoldsAndThawDeliversInOrder(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		c.Member(1).Freeze()
		send(c, 0, 1, 1)
		send(c, 1, 2, 11)
		c.Advance(time.Second)
		send(c, 2, 1, 2)
		send(c, 1, 2, 12)
		c.Advance(time.Second)
		send(c, 0, 1, 3)
		j := c.Join()
		require.Empty(t, got(c, in.At(1)))
		require.Empty(t, got(c, in.At(2)))
		require.False(t, c.Member(1).Sees(j), "its provider is silent, too")
		require.True(t, c.Member(0).Sees(j))

		c.Member(1).Thaw()
		require.Equal(t, []int64{1, 2, 3}, got(c, in.At(1)))
		require.Equal(t, []int64{11, 12}, got(c, in.At(2)))
		c.Advance(time.Second)
		require.True(t, c.Member(1).Sees(j))
		send(c, 0, 1, 4)
		require.Equal(t, []int64{4}, got(c, in.At(1)))

		c.Member(1).Freeze()
		send(c, 0, 1, 5)
		c.Settle()
		next := c.Member(1).Restart() // held messages are lost
		require.Empty(t, got(c, in.Of(next)))
		send(c, 0, 1, 6)
		require.Equal(t, []int64{6}, got(c, in.At(1)))
	})
}

func TestMember_CrashRestartLeaveJoin(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		old := c.Member(1)
		p := in.At(1)
		old.Crash()
		require.True(t, old.Gone())
		require.Len(t, c.Members(), 2)
		send(c, 0, 1, 1)
		require.Empty(t, got(c, p))
		require.True(t, c.Member(0).Sees(old), "nobody has noticed")
		_, err := old.Session.Lease("x").TryAcquire(t.Context())
		require.ErrorIs(t, err, coordination.ErrClosed)

		next := old.Restart()
		require.Equal(t, 1, next.Index)
		require.Equal(t, old.Address, next.Address)
		require.NotEqual(t, old.ID, next.ID)
		require.NotSame(t, old.System, next.System)
		require.Same(t, next, c.Member(1))
		c.Ready()
		require.False(t, c.Member(0).Sees(old))
		require.True(t, c.Member(0).Sees(next) && next.Sees(c.Member(2)))
		send(c, 0, 1, 2)
		require.Equal(t, []int64{2}, got(c, in.At(1)))

		require.NoError(t, c.Member(2).Leave(t.Context()))
		c.Advance(time.Second)
		require.False(t, next.Sees(c.Member(2)))
		require.Equal(t, 3, c.Join().Index)
		send(c, 3, 0, 3)
		require.Equal(t, []int64{3}, got(c, in.At(0)))
		back := c.Member(2).Restart()
		c.Ready()
		require.True(t, c.Member(0).Sees(back))
	})
}

func TestMember_ViewsMayDisagree(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		a, b, d := c.Member(0), c.Member(1), c.Member(2)
		a.Drops(b)
		c.Advance(100 * time.Millisecond)
		require.False(t, a.Sees(b))
		require.True(t, b.Sees(a) && d.Sees(b))
		a.Lists(b)
		c.Advance(100 * time.Millisecond)
		require.True(t, a.Sees(b))
		d.Expel()
		c.Advance(100 * time.Millisecond)
		require.False(t, a.Sees(d) || b.Sees(d))
		require.True(t, d.Sees(a))
	})
}

func TestMember_RolesFollowTheIndex(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		require.Equal(t, []string{"backend"}, c.Member(1).Restart().Roles)
		require.Empty(t, c.Member(0).Roles)
	}, testkit.Roles(func(i int) []string {
		if i == 1 {
			return []string{"backend"}
		}
		return nil
	}))
}

var errStore = errors.New("store on fire")

func TestStore_Faults(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(0)
		ctx := t.Context()
		acquire := func() (time.Duration, error) {
			start := time.Now()
			g, err := m.Session.Lease("x").TryAcquire(ctx)
			if err == nil {
				err = g.Release(ctx)
			}
			return time.Since(start), err
		}
		took, err := acquire()
		require.NoError(t, err)
		require.Zero(t, took)

		m.Store.Set(testkit.StoreFaults{Err: errStore})
		_, err = acquire()
		require.ErrorIs(t, err, errStore)
		m.Store.Set(testkit.StoreFaults{Delay: 500 * time.Millisecond,
			Answer: 250 * time.Millisecond})
		took, err = acquire()
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, 1500*time.Millisecond)
		m.Store.Set(testkit.StoreFaults{Away: true})
		_, err = acquire()
		require.ErrorIs(t, err, coordination.ErrUnknown)
		c.Heal()
		c.Advance(10 * time.Second) // until the session is idle
		took, err = acquire()
		require.NoError(t, err)
		require.Zero(t, took)

		writes := func(s testkit.StoreCall) bool { return s.Write && s.Next.Nonce != "" }
		hit := m.Store.Next(writes, testkit.StoreFaults{LoseAnswer: true})
		start := time.Now()
		_, err = acquire()
		require.True(t, hit())
		t.Logf("with a lost answer: %v after %v", err, time.Since(start))
		rec, _, _ := c.Leases.Load(ctx, "x")
		require.NotZero(t, rec.Token)
	})
}

// Faults hit every ability of the store.
func TestStore_FaultsHitEveryAbility(t *testing.T) {
	ctx, s := t.Context(), testkit.NewStore(memory.New())
	require.True(t, s.KeepsSessions())
	v, err := s.Swap(ctx, "x", "", leasestore.Record{Token: 1})
	require.NoError(t, err)
	d, err := s.SwapDocument(ctx, "x", "", []byte("text"))
	require.NoError(t, err)
	batch := func() error {
		out := s.SwapAll(ctx, []leasestore.Swap{{Name: "y"}, {Name: "z"}})
		require.Len(t, out, 2)
		require.Equal(t, out[0].Err, out[1].Err)
		return out[0].Err
	}
	calls := map[string]func() error{
		"Load":         func() error { _, _, err := s.Load(ctx, "x"); return err },
		"SwapAll":      batch,
		"LoadDocument": func() error { _, _, err := s.LoadDocument(ctx, "x"); return err },
		"SwapDocument": func() error { _, err := s.SwapDocument(ctx, "x", d, nil); return err },
		"Remove":       func() error { return s.Remove(ctx, "x", v) },
	}
	s.Set(testkit.StoreFaults{Err: errStore})
	for name, call := range calls {
		require.ErrorIs(t, call(), errStore, name)
	}
	s.Set(testkit.StoreFaults{})
	for name, call := range calls {
		require.NoError(t, call(), name)
	}
	// One match hits the whole batch, and nothing else.
	hit := s.Next(func(c testkit.StoreCall) bool { return c.Write && c.Lease == "z" },
		testkit.StoreFaults{Err: errStore})
	require.NoError(t, calls["Load"]())
	require.False(t, hit())
	require.ErrorIs(t, batch(), errStore)
	require.True(t, hit())
}

func TestStore_AWriteWhoseAnswerIsLostHasHappened(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(0)
		within := func(f func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return f(ctx)
		}
		write := func(ctx context.Context) error {
			_, err := m.Store.Swap(ctx, "y", "", leasestore.Record{Token: 3})
			return err
		}
		m.Store.Next(nil, testkit.StoreFaults{Away: true})
		require.ErrorIs(t, within(write), testkit.ErrAnswerLost)
		rec, _, _ := c.Leases.Load(t.Context(), "y")
		require.Zero(t, rec)
		m.Store.Next(nil, testkit.StoreFaults{LoseAnswer: true})
		require.ErrorIs(t, within(write), testkit.ErrAnswerLost)
		rec, _, _ = c.Leases.Load(t.Context(), "y")
		require.EqualValues(t, 3, rec.Token)

		m.Crash()
		require.ErrorIs(t, within(write), testkit.ErrAnswerLost)
		require.NoError(t, within(func(ctx context.Context) error {
			for r, err := range m.Store.Watch(ctx, "y") {
				return fmt.Errorf("told of %v, %w", r, err)
			}
			return nil
		}))
	})
}

func TestStore_OfAFrozenAndOfACrashedMember(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		a, b := c.Member(0), c.Member(1)
		held, err := a.Session.Lease("x").TryAcquire(t.Context())
		require.NoError(t, err)
		a.Freeze()
		c.Advance(time.Minute)
		require.ErrorIs(t, held.Check(), coordination.ErrLost, "its own clock says so")
		taken, err := b.Session.Lease("x").Acquire(t.Context())
		require.NoError(t, err)
		require.Greater(t, taken.Token(), held.Token())
		a.Thaw()
		c.Advance(time.Minute)
		require.NoError(t, taken.Check())

		b.Crash()
		start := time.Now()
		again, err := a.Session.Lease("x").Acquire(t.Context())
		require.NoError(t, err)
		require.Greater(t, time.Since(start), 5*time.Second, "only when its time was up")
		require.Greater(t, again.Token(), taken.Token())
		require.Error(t, taken.Check())
		d := c.Join()
		require.NoError(t, again.Release(t.Context()))
		require.NoError(t, a.Leave(t.Context()))
		start = time.Now()
		_, err = d.Session.Lease("x").Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second, "released in order")
	})
}

func TestCluster_SettleWaitsForWhatFlies(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		in := inboxes(t, c)
		start := time.Now()
		c.Link(0, 1).Set(testkit.Faults{Delay: 10 * time.Second})
		send(c, 0, 1, 1)
		c.Link(0, 1).Set(testkit.Faults{})
		c.Member(1).Store.Set(testkit.StoreFaults{Delay: 20 * time.Second})
		go func() { _, _, _ = c.Member(1).Store.Load(t.Context(), "x") }()
		c.Settle()
		_, ok := in.At(1).Poll()
		require.True(t, ok)
		require.InDelta(t, 20, time.Since(start).Seconds(), 0.1)
	})
}

func TestCluster_CleansUpWhateverIsLeft(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		inboxes(t, c)
		c.Member(0).Freeze()
		c.Partition([]int{0, 1}, []int{2, 3})
		c.Member(2).Crash()
		c.Member(1).Store.Set(testkit.StoreFaults{Away: true})
		go func() { _, _ = c.Member(1).Session.Lease("x").Acquire(context.Background()) }()
		send(c, 0, 1, 1)
	})
}
