package simnet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every number with itself, and never answers strings.
func echo(m *simnet.Member) {
	_, err := m.System.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if n, ok := ctx.Message().(*wrapperspb.Int64Value); ok && ctx.Sender() != nil {
			ctx.Respond(wrapperspb.Int64(n.Value))
		}
	}), "echo")
	if err != nil {
		panic(err)
	}
}

func request(t *testing.T, from, to *simnet.Member) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := ask.Request(ctx, from.System, actor.NewPID(to.Address, "echo"), wrapperspb.Int64(1))
	return err
}

func TestLatencyIsVirtualAndExact(t *testing.T) {
	cfg := simnet.Config{Members: 2, Setup: echo, Options: simnet.Options{
		Latency: 20 * time.Millisecond}}
	simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
		start := time.Now()
		require.NoError(t, request(t, c.Member(0), c.Member(1)))
		require.Equal(t, 40*time.Millisecond, time.Since(start).Truncate(time.Millisecond))
		require.Equal(t, 2, c.Net.Stats().Delivered)
	})
}

func TestCutIsOneWayUnlessBoth(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: echo}, func(t *testing.T, c *simnet.Cluster) {
		a, b := c.Member(0), c.Member(1)
		c.Net.Link(b.Address, a.Address).Set(simnet.Faults{Cut: true})
		require.ErrorIs(t, request(t, a, b), context.DeadlineExceeded)
		require.Equal(t, 1, c.Net.Link(a.Address, b.Address).Stats().Delivered,
			"the request arrives, the answer does not")
		c.Net.Heal()
		require.NoError(t, request(t, a, b))
		c.Net.Partition([]string{a.Address}, []string{b.Address})
		require.ErrorIs(t, request(t, b, a), context.DeadlineExceeded)
	})
}

func TestMissingActorAnswersWithADeadLetter(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2}, func(t *testing.T, c *simnet.Cluster) {
		require.ErrorIs(t, request(t, c.Member(0), c.Member(1)), ask.ErrDeadLetter)
	})
}

func TestInFlight_LostAtACutAndReachesTheNextProcess(t *testing.T) {
	cfg := simnet.Config{Members: 2, Options: simnet.Options{Latency: time.Second}}
	simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
		a, b := c.Member(0), c.Member(1)
		send := func() { a.System.Root.Send(actor.NewPID(b.Address, "echo"), wrapperspb.Int64(1)) }
		send()
		c.Net.Cut(a.Address, b.Address)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, c.Net.Stats().Lost)
		require.Zero(t, c.Net.Stats().Delivered)
		c.Net.Heal()
		send()
		next := c.Restart(b)
		got := false
		_, err := next.System.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			_, n := ctx.Message().(*wrapperspb.Int64Value)
			got = got || n
		}), "echo")
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, got, "as with remoting, the address decides")
	})
}

func TestCrashedSystemIsMute(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: echo}, func(t *testing.T, c *simnet.Cluster) {
		a, b := c.Member(0), c.Member(1)
		c.Crash(b)
		require.ErrorIs(t, request(t, a, b), context.DeadlineExceeded)
		require.ErrorIs(t, request(t, b, a), context.DeadlineExceeded)
		require.Equal(t, 0, c.Net.Stats().Delivered)
		require.Len(t, c.Live(), 1)
	})
}

// sequence sends 1..n from member 0 to member 1 and returns the numbers that arrive.
func sequence(c *simnet.Cluster, n int64) []int64 {
	var got []int64
	a, b := c.Member(0), c.Member(1)
	pid, _ := b.System.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if n, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			got = append(got, n.Value)
		}
	}), "sequence")
	for i := range n {
		a.System.Root.Send(actor.NewPID(b.Address, pid.Id), wrapperspb.Int64(i))
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	return got
}

func TestOrderIsKeptUnderJitterUnlessTold(t *testing.T) {
	cfg := simnet.Config{Members: 2, Options: simnet.Options{Latency: time.Millisecond,
		Jitter: time.Second, Seed: 7}}
	for _, reorder := range []bool{false, true} {
		simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
			c.Net.SetAll(simnet.Faults{Jitter: time.Second, Reorder: reorder})
			got := sequence(c, 200)
			require.Len(t, got, 200)
			require.Equal(t, !reorder, increasing(got))
		})
	}
}

func increasing(s []int64) bool {
	for i := 1; i < len(s); i++ {
		if s[i] <= s[i-1] {
			return false
		}
	}
	return true
}

func TestLossAndDuplicationFollowTheSeed(t *testing.T) {
	run := func(seed uint64) (got []int64) {
		cfg := simnet.Config{Members: 2, Options: simnet.Options{Seed: seed}}
		simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
			c.Net.SetAll(simnet.Faults{Loss: 0.3, Duplicate: 0.3, Jitter: time.Second,
				Reorder: true})
			got = sequence(c, 100)
			s := c.Net.Stats()
			require.Equal(t, 100, s.Sent)
			require.Positive(t, s.Lost)
			require.Greater(t, s.Delivered, 100-s.Lost, "duplicates")
		})
		return got
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

func TestOversizeAndUnserialisableAreCounted(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		c := simnet.NewCluster(simnet.Config{Members: 2, Options: simnet.Options{MaxMessage: 100}})
		defer c.Close()
		a, b := c.Member(0), c.Member(1)
		to := actor.NewPID(b.Address, "x")
		a.System.Root.Send(to, wrapperspb.Bytes(make([]byte, 101)))
		a.System.Root.Send(to, struct{}{})
		s := c.Net.Stats()
		require.Equal(t, 1, s.Oversize)
		require.Equal(t, 1, s.Invalid)
		require.Equal(t, []string{"struct {}"}, c.Net.Unserialisable())
	})
}

func TestObserverSeesEveryMessageWithItsVerdict(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: echo}, func(t *testing.T, c *simnet.Cluster) {
		var seen []simnet.Verdict
		c.Net.Observe(func(p simnet.Packet) { seen = append(seen, p.Verdict) })
		a, b := c.Member(0), c.Member(1)
		send := func() {
			a.System.Root.Send(actor.NewPID(b.Address, "echo"), wrapperspb.Int64(1))
		}
		send()
		c.Net.Cut(a.Address, b.Address)
		send()
		require.Equal(t, []simnet.Verdict{simnet.Carried, simnet.LostCut}, seen)
	})
}

func TestEventsFollowTheLists(t *testing.T) {
	type seen struct{ members, joined, left int }
	events := map[string][]seen{}
	cfg := simnet.Config{Members: 2, Setup: func(m *simnet.Member) {
		m.System.EventStream.Subscribe(func(e any) {
			if t, ok := e.(*cluster.ClusterTopology); ok {
				events[m.ID] = append(events[m.ID],
					seen{len(t.Members), len(t.Joined), len(t.Left)})
			}
		})
	}}
	simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
		a, b := c.Member(0), c.Member(1)
		require.Equal(t, []seen{{2, 2, 0}}, events[a.ID])
		j := c.Join()
		require.Equal(t, seen{3, 1, 0}, events[a.ID][1])
		c.Expel(j)
		require.Equal(t, seen{2, 0, 1}, events[a.ID][2])
		require.Equal(t, []seen{{3, 3, 0}}, events[j.ID], "the expelled one notices nothing")
		next := c.Restart(b)
		require.Equal(t, seen{2, 1, 1}, events[a.ID][3])
		again := c.RestartBeside(next)
		require.Equal(t, seen{3, 1, 0}, events[a.ID][4])
		c.Unlist(c.Live(), []*simnet.Member{next})
		c.Leave(again)
		require.Equal(t, seen{1, 0, 1}, events[a.ID][6])
	})
}

func TestFrozenHostSendsAndReceivesWhenItThaws(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: echo}, func(t *testing.T, c *simnet.Cluster) {
		a, b := c.Member(0), c.Member(1)
		c.Freeze(b)
		require.ErrorIs(t, request(t, a, b), context.DeadlineExceeded)
		require.ErrorIs(t, request(t, b, a), context.DeadlineExceeded)
		_, flying := c.Net.Flying()
		require.Zero(t, flying)
		require.Zero(t, c.Net.Stats().Delivered)
		c.Thaw(b)
		time.Sleep(time.Second)
		require.Equal(t, 4, c.Net.Stats().Delivered,
			"two requests, two answers that nobody waits for")
		require.NoError(t, request(t, a, b))
	})
}

func TestCloseEndsWhatIsOnItsWay(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		c := simnet.NewCluster(simnet.Config{Members: 2, Options: simnet.Options{
			Latency: time.Hour}})
		c.Member(0).System.Root.Send(actor.NewPID(c.Member(1).Address, "x"), wrapperspb.Int64(1))
		due, flying := c.Net.Flying()
		require.Equal(t, 1, flying)
		require.Equal(t, time.Hour, time.Until(due).Truncate(time.Millisecond))
		c.Close()
		c.Close()
		_, flying = c.Net.Flying()
		require.Zero(t, flying)
	})
}
