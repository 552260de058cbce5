package singleton_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/singleton"
)

// These scenarios are bugs that users of other cluster singletons have met.

// GoAkt 94c8740c: the host of a singleton froze and woke up, and from then on there were two
// instances. The observer of the cluster fails this test if two instances ever live at once. (The
// simulation of leases covers pauses of the process itself.)
func TestScenario_WokenHostIsNotASecondInstance(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		frozen := c.Member(0)
		c.Freeze(frozen)
		c.node(0).store.away(true)
		others := []*simnetMember{c.Member(1), c.Member(2)}
		c.Unlist(others, []*simnetMember{frozen})
		synctest.Wait()
		host, took := c.found(c.node(2), 40*time.Second)
		require.Equal(t, "m001", host)
		require.LessOrEqual(t, took, stale+time.Second)
		time.Sleep(time.Minute)
		c.node(0).store.away(false)
		c.Thaw(frozen)
		c.List(others, []*simnetMember{frozen}) // the provider lists it again
		time.Sleep(time.Minute)
		require.Equal(t, 1, c.alive.count())
		for i := range 3 {
			c.found(c.node(i), time.Second)
		}
	})
}

// The TTL of the host's lease used to run only from the moment its crash had been noticed. Now the
// members that may host next observe the lease before that.
func TestScenario_TheLeaseRunsOutWhileTheCrashIsNoticed(t *testing.T) {
	const noticed = 3300 * time.Millisecond
	for alive := 20 * time.Second; alive < 20*time.Second+ttl/3; alive += 300 * time.Millisecond {
		run(t, 3, options{}, func(c *testCluster) {
			c.found(c.node(2), 20*time.Second)
			time.Sleep(alive) // the crash comes at some moment between two renewals
			crashed := time.Now()
			c.Crash(c.Member(0))
			c.node(0).store.away(true)
			time.Sleep(noticed)
			c.Unlist(c.Live(), []*simnetMember{c.Member(0)})
			host, _ := c.found(c.node(2), 40*time.Second)
			require.Equal(t, "m001", host)
			require.LessOrEqual(t, time.Since(crashed), ttl*101/100+time.Second)
		})
	}
}

// akka 31925: two singletons of one cluster shared one lease.
func TestScenario_TwoSingletonsHaveTwoLeases(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		var started []string
		var mails []*singleton.Singleton
		for i := range 2 {
			s, err := singleton.New(c.Member(i).System, c.node(i).session, singleton.Config{
				Name: "mail"},
				func(coordination.Tenure) actor.Actor {
					return actor.ReceiveFunc(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *actor.Started:
							started = append(started, c.Member(i).ID)
						case *wrapperspb.StringValue:
							ctx.Respond(wrapperspb.String("mail"))
						}
					})
				})
			require.NoError(t, err)
			mails = append(mails, s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		answer, err := singleton.As[*wrapperspb.StringValue](mails[1].Ask(ctx,
			wrapperspb.String("who")))
		require.NoError(t, err)
		require.Equal(t, "mail", answer.Value)
		require.Equal(t, []string{"m000"}, started)
		c.found(c.node(1), time.Second) // the other singleton is unaffected
		for _, s := range mails {
			require.NoError(t, s.Close(ctx))
		}
		synctest.Wait()
	})
}

// akka, pekko, akka.net: after the loss of the lease nothing bounded the life of the old instance.
// Here an instance that ignores its stop message is gone before another session can hold the lease.
func TestScenario_InstanceDoesNotOutliveItsLease(t *testing.T) {
	o := options{cfg: singleton.Config{StopMessage: wrapperspb.String("ignored"),
		HandOver: time.Hour}}
	run(t, 2, o, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.node(0).store.away(true)
		away := time.Now()
		time.Sleep(ttl)
		require.Zero(t, c.alive.count())
		require.Less(t, c.alive.ended.Sub(away), ttl*99/100-250*time.Millisecond,
			"before validity has ended")
	})
}

// akka management, pekko management 911, actor-ts 600: a failed release was not repeated, and the
// next host waited for the TTL.
func TestScenario_AFailedReleaseIsRepeated(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.node(0).store.away(true)
		left := make(chan error, 1)
		go func() { left <- c.node(0).leave(20 * time.Second) }()
		time.Sleep(2 * time.Second)
		c.node(0).store.away(false)
		host, took := c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m001", host)
		require.Less(t, took, 5*time.Second, "it has not waited for the time to live of %v", ttl)
		require.NoError(t, <-left)
	})
}

// akka.net 7230, actor-ts 637: a member that had handed over once never hosted again after its
// restart, and in the end no member did.
// Seen in akka.net 7230, 8583, actor-ts 637.
func TestScenario_FormerHostHostsAgainAfterARestart(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		a, b := c.node(0), c.node(1)
		for range 4 {
			c.found(b, 20*time.Second)
			require.NoError(t, a.leave(20*time.Second))
			next := c.nodes[c.Restart(a.Member)]
			synctest.Wait()
			host, _ := c.found(next, 20*time.Second)
			require.Equal(t, b.ID, host)
			a, b = b, next // the other member is the oldest now
		}
		require.Equal(t, 1, c.alive.count())
	})
}
