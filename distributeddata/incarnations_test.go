package distributeddata_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
)

// rejoinCluster is a virtual cluster whose processes run one incarnation of their member after
// another.
type rejoinCluster struct{ *cluster }

// runRejoin runs a test with n members, each in its first incarnation.
func runRejoin(t *testing.T, n int, cfg distributeddata.Config, test func(c *rejoinCluster)) {
	t.Helper()
	if cfg.MinMembers == 0 {
		cfg.MinMembers = 1
	}
	c := &cluster{t: t, cfg: cfg, incarnations: map[string]*lifecycle.Incarnations{}}
	c.run(n, func(c *cluster) { test(&rejoinCluster{c}) })
}

// alone cuts a member off, until all have dropped it and it has dropped them.
func (c *rejoinCluster) alone(m *simnet.Member) {
	others := slices.DeleteFunc(c.Live(), func(o *simnet.Member) bool { return o == m })
	for _, o := range others {
		c.Net.Cut(m.Address, o.Address)
	}
	c.Unlist(others, []*simnet.Member{m})
	c.Unlist([]*simnet.Member{m}, others)
	synctest.Wait()
}

// end ends the incarnation of a member as package node does.
func (c *rejoinCluster) end(m *simnet.Member) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := lifecycle.Of(m.System).Stop(ctx, nil)
	membership.Attach(m.System).Stop()
	c.Crash(m)
	return err
}

// again begins the next incarnation of the process of m.
func (c *rejoinCluster) again(m *simnet.Member) *simnet.Member {
	c.Net.Heal()
	next := c.Restart(m)
	require.Same(c.t, c.dd[m], c.dd[next], "a handle that was kept works on")
	return next
}

// A reproduction in virtual time: what a member wrote while it was alone was silently lost.
func TestRejoin_WritesMadeAloneReachTheOthers(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{}, func(c *rejoinCluster) {
		for i := range 3 {
			require.NoError(t, c.count(i, 1))
		}
		time.Sleep(time.Second)
		m := c.Member(0)
		c.alone(m)
		for range 47 {
			require.NoError(t, c.count(0, 1))
			require.NoError(t, c.count(1, 1))
		}
		begin := time.Now()
		require.NoError(t, c.end(m))
		require.Less(t, time.Since(begin), time.Second)
		require.EqualValues(t, 50, c.total(0),
			"between two incarnations a local read serves what was there")
		next := c.again(m)
		c.ready(next)
		time.Sleep(2 * time.Second)
		for i := range 3 {
			require.EqualValues(t, 3+2*47, c.total(i), i)
		}
		require.NoError(t, c.count(0, 1, distributeddata.All))
		require.EqualValues(t, 4+2*47, c.total(2))
	})
}

// When the incarnation ends, messages without a waiter are in an open event or still in the
// mailbox.
func TestRejoin_UpdatesWithoutAWaiterAreKept(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{}, func(c *rejoinCluster) {
		m, pid := c.Member(0), c.at(0).PID()
		send := func() {
			m.System.Root.Send(pid, &distributeddata.Update[crdt.PNCounter]{
				Key: visits, At: local, Modify: func(w *crdt.Writer, v *crdt.PNCounter) error {
					v.Add(w, 1)
					return nil
				}})
		}
		c.alone(m)
		for range 100 {
			send()
		}
		require.NoError(t, c.end(m))
		for range 10 {
			send() // between two incarnations
		}
		require.Same(t, pid, c.at(0).PID())
		c.ready(c.again(m))
		time.Sleep(2 * time.Second)
		for i := range 3 {
			require.EqualValues(t, 110, c.total(i), i)
		}
	})
}

func TestRejoin_CallsWaitForTheNextIncarnation(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{MinMembers: 3}, func(c *rejoinCluster) {
		require.NoError(t, c.count(0, 1, distributeddata.All))
		m := c.Member(0)
		require.NoError(t, c.end(m))

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := visits.Update(ctx, c.at(0), func(w *crdt.Writer, v *crdt.PNCounter) error {
			v.Add(w, 100)
			return nil
		}, local)
		require.ErrorIs(t, err, lifecycle.ErrRejoining)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "nothing was done")
		begin := time.Now()
		// no deadline: OperationTimeout
		_, err = visits.Get(context.Background(), c.at(0), distributeddata.Majority)
		require.ErrorIs(t, err, lifecycle.ErrRejoining)
		require.Equal(t, 5*time.Second, time.Since(begin))
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.at(0).Ready(short), context.DeadlineExceeded)
		require.Equal(t, []string{"visits"}, slices.Collect(c.at(0).Keys()))
		require.False(t, c.at(0).Status().Ready)

		errs := make(chan error, 3)
		go func() { errs <- c.count(0, 1, distributeddata.Majority) }()
		go func() { errs <- c.at(0).Ready(context.Background()) }()
		go func() {
			_, err := visits.Get(context.Background(), c.at(0), distributeddata.Linearizable)
			errs <- err
		}()
		time.Sleep(2 * time.Second)
		require.Empty(t, errs)
		c.again(m)
		for range 3 {
			require.NoError(t, <-errs)
		}
		require.EqualValues(t, 2, c.total(1, distributeddata.Majority))
	})
}

// Operations in flight when an incarnation ends: a read continues in the next one; for an applied
// write the level is unknown.
func TestRejoin_PendingOperationsAtTheEnd(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{MinMembers: 3}, func(c *rejoinCluster) {
		m := c.Member(0)
		c.Net.Partition(addresses(c.cluster, 0), addresses(c.cluster, 1, 2))
		write, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := visits.Update(context.Background(), c.at(0),
				func(w *crdt.Writer, v *crdt.PNCounter) error {
					v.Add(w, 1)
					return nil
				}, distributeddata.Majority)
			write <- err
		}()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := visits.Get(ctx, c.at(0), distributeddata.Majority)
			read <- err
		}()
		time.Sleep(time.Second)
		c.alone(m)
		c.Unlist([]*simnet.Member{m}, []*simnet.Member{m}) // its own provider drops it
		synctest.Wait()
		require.NoError(t, c.end(m))
		err := <-write
		require.ErrorIs(t, err, distributeddata.ErrUnknown)
		require.ErrorContains(t, err, "the update is kept")
		synctest.Wait()
		require.Empty(t, read)
		c.ready(c.again(m))
		require.NoError(t, <-read)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, c.total(2))
	})
}

// No member listens to a removed one. Before, it waited for five seconds.
func TestClose_OfARemovedMemberTakesNoTime(t *testing.T) {
	for _, before := range []bool{true, false} {
		run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
			require.NoError(t, c.count(0, 1, distributeddata.All))
			c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
			require.NoError(t, c.count(0, 1))
			require.NoError(t, c.add(0, "milk"))
			remove := func() {
				// its own provider drops it
				c.Unlist([]*simnet.Member{c.Member(0)}, []*simnet.Member{c.Member(0)})
			}
			if before {
				remove()
				synctest.Wait()
			} else {
				time.AfterFunc(500*time.Millisecond, remove)
			}
			begin := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := c.at(0).Close(ctx)
			require.Less(t, time.Since(begin), time.Second)
			require.ErrorIs(t, err, distributeddata.ErrQuorum)
			require.ErrorIs(t, err, membership.ErrDropped)
			require.ErrorContains(t, err,
				`2 of the updates made here (keys ["cart" "visits"]) are not known to be on any other replica`)
		})
	}
}

// Close takes at most as long as its context if no member can be reached.
func TestClose_IsBoundedByItsContext(t *testing.T) {
	run(t, 4, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2, 3))
		require.NoError(t, c.count(0, 1))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
		defer cancel()
		err := c.at(0).Close(ctx)
		require.InDelta(t, 0.7, time.Since(begin).Seconds(), 0.15)
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorContains(t, err, "1 of the updates made here")

		begin = time.Now()
		require.NoError(t, c.count(1, 1))
		require.NoError(t, c.at(1).Close(context.Background()), "in the ordinary case")
		require.Less(t, time.Since(begin), 100*time.Millisecond)
	})
}

// Alone in its view below MinMembers a member waits for no other, and the updates are lost.
func TestClose_AloneBelowMinMembersSaysWhatIsLost(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{MinMembers: 3}, func(c *rejoinCluster) {
		c.alone(c.Member(0))
		require.NoError(t, c.count(0, 1))
		begin := time.Now()
		err := c.at(0).Close(context.Background())
		require.Zero(t, time.Since(begin))
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorContains(t, err, `(keys ["visits"])`)
	})
}

// A member that is alone keeps no log. The keys of its updates are found in its state.
func TestClose_AloneForLongNamesTheKeys(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{MinMembers: 3}, func(c *rejoinCluster) {
		require.NoError(t, c.count(0, 1, distributeddata.All))
		require.NoError(t, c.add(0, "milk", distributeddata.All))
		c.alone(c.Member(0))
		require.NoError(t, c.count(0, 1))
		time.Sleep(time.Minute)
		err := c.at(0).Close(context.Background())
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorContains(t, err, `1 of the updates made here (keys ["visits"])`)
	})
}

// A modify function blocks the actor for longer than the stop may take. Its result reaches the next
// incarnation, which has begun without it.
func TestRejoin_AnIncarnationThatEndsLateIsInherited(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{}, func(c *rejoinCluster) {
		m := c.Member(0)
		c.alone(m)
		require.NoError(t, c.count(0, 1))
		blocked, result := make(chan struct{}), make(chan error, 1)
		// Otherwise OperationTimeout ends the call.
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		go func() {
			_, err := visits.Update(ctx, c.at(0), func(w *crdt.Writer, v *crdt.PNCounter) error {
				<-blocked
				v.Add(w, 10)
				return nil
			}, local)
			result <- err
		}()
		synctest.Wait()
		require.ErrorContains(t, c.end(m), "did not stop in time")
		next := c.again(m)
		c.ready(next)
		require.NoError(t, c.count(0, 100))
		close(blocked)
		require.NoError(t, <-result)
		time.Sleep(2 * time.Second)
		for i := range 3 {
			require.EqualValues(t, 111, c.total(i), i)
		}
	})
}

func TestRejoin_TheFinalEndFailsWaitingCalls(t *testing.T) {
	runRejoin(t, 2, distributeddata.Config{}, func(c *rejoinCluster) {
		m := c.Member(0)
		require.NoError(t, c.end(m))
		errs := make(chan error, 2)
		go func() { errs <- c.count(0, 1) }()
		go func() { errs <- c.at(0).Ready(context.Background()) }()
		synctest.Wait()
		c.incarnations[m.Address].End()
		require.ErrorIs(t, <-errs, distributeddata.ErrClosed)
		require.ErrorIs(t, <-errs, distributeddata.ErrClosed)
		require.ErrorIs(t, c.count(0, 1), distributeddata.ErrClosed)
		require.NoError(t, c.at(0).Close(context.Background()))
	})
}

// Subscriptions belong to actors of one incarnation; those of the next incarnation are notified as
// usual.
func TestRejoin_NewSubscribersReceiveValues(t *testing.T) {
	runRejoin(t, 2, distributeddata.Config{}, func(c *rejoinCluster) {
		m := c.Member(0)
		old, now := &atomic.Int64{}, &atomic.Int64{}
		c.watch(m, old)
		require.NoError(t, c.count(1, 1))
		time.Sleep(time.Second)
		require.EqualValues(t, 1, old.Load())
		require.NoError(t, c.end(m))
		next := c.again(m)
		c.watch(next, now) // also before it runs
		require.NoError(t, c.count(1, 1))
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 2, now.Load())
		require.EqualValues(t, 1, old.Load())
	})
}

// watch stores the last value of visits that an actor of m was sent.
func (c *rejoinCluster) watch(m *simnet.Member, told *atomic.Int64) {
	pid := m.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if ch, ok := ctx.Message().(*distributeddata.Changed[crdt.PNCounter]); ok {
			told.Store(ch.Value.Value())
		}
	}))
	visits.Subscribe(c.dd[m], pid, nil)
}

// A different configuration in a later incarnation takes effect.
func TestRejoin_TheNewConfigurationCounts(t *testing.T) {
	runRejoin(t, 2, distributeddata.Config{MinMembers: 2}, func(c *rejoinCluster) {
		m := c.Member(0)
		require.NoError(t, c.end(m))
		c.cfg.MinMembers = 3
		c.again(m)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.at(0).Ready(ctx), context.DeadlineExceeded)
		err := c.count(0, 1, distributeddata.Majority)
		q, ok := errors.AsType[*distributeddata.QuorumError](err)
		require.True(t, ok, err)
		require.Equal(t, 2, q.Needed)
	})
}

func TestNew_TwiceOnOneSystemIsRefused(t *testing.T) {
	runRejoin(t, 1, distributeddata.Config{}, func(c *rejoinCluster) {
		_, err := distributeddata.New(c.Member(0).System, listed(distributeddata.Config{}))
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		require.ErrorContains(t, err, `"ddata"`)
		require.NoError(t, c.count(0, 1), "the first one is as it was")
	})
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		_, err := distributeddata.New(c.Member(0).System, listed(distributeddata.Config{}))
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		require.NoError(t, c.count(0, 1))
	})
}

// Every retained actor system costs 3 MB.
func TestRejoin_AnEndedIncarnationIsCollected(t *testing.T) {
	gone := make(chan int, 10)
	incarnations := lifecycle.NewIncarnations()
	dd, n := (*distributeddata.Replicator)(nil), 5
	for i := range n {
		dd = shortIncarnation(t, incarnations, gone, i)
	}
	collected := map[int]bool{}
	for range 100 {
		runtime.GC()
		select {
		case i := <-gone:
			collected[i] = true
		case <-time.After(20 * time.Millisecond):
		}
		if len(collected) >= n-1 {
			break
		}
	}
	require.GreaterOrEqual(t, len(collected), n-1, "the last one may be kept until the next: %v",
		collected)
	v, err := visits.Get(context.Background(), dd)
	require.NoError(t, err)
	require.EqualValues(t, n, v.Value())
	incarnations.End()
}

// shortIncarnation is one incarnation of a cluster of one, in real time; gone receives i when its
// system has been collected.
func shortIncarnation(t *testing.T, incarnations *lifecycle.Incarnations, gone chan<- int,
	i int) (dd *distributeddata.Replicator) {
	c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		incarnations.Attach(m.System)
		var err error
		dd, err = distributeddata.New(m.System, distributeddata.Config{MinMembers: 1})
		require.NoError(t, err)
	}})
	defer c.Close()
	m := c.Member(0)
	runtime.AddCleanup(m.System, func(i int) { gone <- i }, i)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, dd.Ready(ctx))
	pid := m.System.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	visits.Subscribe(dd, pid, nil)
	_, err := visits.Update(ctx, dd, func(w *crdt.Writer, v *crdt.PNCounter) error {
		v.Add(w, 1)
		return nil
	}, local)
	require.NoError(t, err)
	m.System.Root.Send(dd.PID(), &distributeddata.Get[crdt.PNCounter]{Key: visits})
	require.NoError(t, lifecycle.Of(m.System).Stop(ctx, nil))
	membership.Attach(m.System).Stop()
	<-membership.Attach(m.System).Stopped()
	m.System.Root.Stop(pid)
	m.System.Shutdown()
	return dd
}
