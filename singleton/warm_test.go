package singleton_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

const maxState = 255 << 10 // bytes

// warm hands over the last text it received, and the tenure that received it.
type warm struct {
	worker
	said  string
	fails *int // how often Started will panic
}

func (w *warm) HandOver() proto.Message {
	switch w.said {
	case "":
		return nil
	case "panics":
		panic("no state")
	}
	return wrapperspb.String(w.said)
}

func (w *warm) TakeOver(giver coordination.Token, state proto.Message) {
	w.said = state.(*wrapperspb.StringValue).Value
	w.node.c.alive.note("of " + giver.String() + " at " + w.tenure.Token().String() + ": " +
		w.said[:min(len(w.said), 9)])
}

func (w *warm) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if *w.fails > 0 {
			*w.fails--
			panic("not yet")
		}
	case *wrapperspb.StringValue:
		if m.Value != "who" && m.Value != "panic" {
			w.said = m.Value
		}
	}
	w.worker.Receive(ctx)
}

func warmly(fails *int) options {
	return options{produce: func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
		return func(t coordination.Tenure) actor.Actor {
			return &warm{worker: worker{node: n, tenure: t}, fails: fails}
		}
	}}
}

// told sends a text to the instance, and waits until it is handled.
func (c *testCluster) told(n *node, text string) {
	c.t.Helper()
	_, err := n.ask(text, time.Second)
	require.NoError(c.t, err)
}

func TestWarm_StatePassesInAPlannedMove(t *testing.T) {
	fails := 0
	run(t, 4, warmly(&fails), func(c *testCluster) {
		c.found(c.node(3), 20*time.Second)
		c.told(c.node(3), "first")
		require.NoError(t, c.node(0).single.Close(context.Background()))
		host, took := c.found(c.node(3), 20*time.Second)
		require.Equal(t, "m001", host)
		t.Logf("hosted after %v", took)
		// The leaving instance hands over the state it got.
		require.NoError(t, c.node(1).single.Close(context.Background()))
		host, _ = c.found(c.node(3), 20*time.Second)
		require.Equal(t, "m002", host)
		require.Equal(t, []string{
			"first", "of 1 at 2: first", "of 2 at 3: first",
		}, c.alive.notes())
		require.Zero(t, c.node(0).single.Stats().StateLost)
	})
}

// An instance that fails in Started may have acted on the state that it took, so the next one does
// not get it.
func TestWarm_AnInstanceThatFailedInStartedHadTheState(t *testing.T) {
	fails := 0
	run(t, 2, warmly(&fails), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.told(c.node(1), "first")
		fails = 2
		require.NoError(t, c.node(0).single.Close(context.Background()))
		host, _ := c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m001", host)
		require.Equal(t, []string{"first", "of 1 at 2: first"}, c.alive.notes())
	})
}

// All members stop: that the state is lost is no fault.
func TestWarm_TheLastMemberLogsNoError(t *testing.T) {
	fails := 0
	var log warnings
	o := warmly(&fails)
	o.system = log.system
	run(t, 1, o, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		c.told(c.node(0), "first")
		require.NoError(t, c.node(0).single.Close(context.Background()))
		require.EqualValues(t, 1, c.node(0).single.Stats().StateLost)
		require.Empty(t, log.With("state"))
	})
}

// A state is handed over once: an instance that is made again after a panic would take a stale one.
func TestWarm_AStateIsHandedOverOnce(t *testing.T) {
	fails := 0
	run(t, 2, warmly(&fails), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.told(c.node(1), "3")
		require.NoError(t, c.node(0).single.Close(context.Background()))
		c.told(c.node(1), "6")
		time.Sleep(30 * time.Second)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("panic"))
		c.found(c.node(1), time.Second)
		require.Equal(t, []string{"3", "of 1 at 2: 3", "6"}, c.alive.notes())
	})
}

// After a crash, a panic, or with a state that cannot be sent, the next instance starts without a
// state.
func TestWarm_StateIsLostWhereItMustBe(t *testing.T) {
	for name, text := range map[string]string{
		"too large": strings.Repeat("x", maxState), "HandOver panics": "panics",
		"nothing to hand over": "",
	} {
		t.Run(name, func(t *testing.T) {
			fails, lost := 0, uint64(1)
			run(t, 2, warmly(&fails), func(c *testCluster) {
				c.found(c.node(1), 20*time.Second)
				c.told(c.node(1), text)
				if text == "" {
					lost = 0
				}
				begun := time.Now()
				require.NoError(t, c.node(0).single.Close(context.Background()))
				require.Less(t, time.Since(begun), time.Second,
					"the release waits for a state that was not sent")
				host, _ := c.found(c.node(1), time.Second)
				require.Equal(t, "m001", host)
				require.Equal(t, []string{text}, c.alive.notes())
				require.Equal(t, lost, c.node(0).single.Stats().StateLost)
			})
		})
	}
	t.Run("panic", func(t *testing.T) {
		fails := 0
		run(t, 1, warmly(&fails), func(c *testCluster) {
			c.found(c.node(0), 20*time.Second)
			c.told(c.node(0), "first")
			c.Member(0).System.Root.Send(c.node(0).single.PID(), wrapperspb.String("panic"))
			c.found(c.node(0), time.Second)
			require.Equal(t, []string{"first"}, c.alive.notes())
		})
	})
}

// A state is never stale: if a tenure in between may have changed it, it is not taken over.
func TestWarm_StateOfAnEarlierTenureIsNotTakenOver(t *testing.T) {
	fails := 0
	run(t, 3, warmly(&fails), func(c *testCluster) {
		c.found(c.node(2), 20*time.Second)
		c.told(c.node(2), "stale")
		c.node(1).store.away(true) // this member gets the state, but not the lease
		require.NoError(t, c.node(0).single.Close(context.Background()))
		time.Sleep(30 * time.Second)
		host, _ := c.found(c.node(2), 20*time.Second)
		require.Equal(t, "m002", host)
		c.told(c.node(2), "fresh")
		c.node(1).store.away(false)
		require.NoError(t, c.node(2).session.Close(context.Background())) // equivalent to a crash
		time.Sleep(time.Minute)
		host, _ = c.found(c.node(1), time.Minute)
		require.Equal(t, "m001", host)
		require.Equal(t, []string{"stale", "fresh"}, c.alive.notes())
	})
}

// A state of exactly MaxState bytes passes: with the name of its type it fits into an envelope.
func TestWarm_StateAtTheBoundPasses(t *testing.T) {
	text := strings.Repeat("x", maxState-4) // 1 byte of tag, 3 of length
	require.Equal(t, maxState, proto.Size(wrapperspb.String(text)))
	fails := 0
	run(t, 2, warmly(&fails), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.told(c.node(1), text)
		require.NoError(t, c.node(0).single.Close(context.Background()))
		c.found(c.node(1), time.Second)
		require.Equal(t, []string{"of 1 at 2: xxxxxxxxx"}, c.alive.notes()[1:])
		require.Zero(t, c.node(0).single.Stats().StateLost)
	})
}

// A member keeps no state above the bound, whatever another member sends.
func TestWarm_AStateAboveTheBoundIsIgnored(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		n := c.node(1)
		c.found(n, 20*time.Second)
		view := n.members().View()
		from := wire.Header{Cluster: view.Cluster, Member: view.Self.ID,
			From: view.Self.Incarnation}
		for i, s := range []*pb.SingletonState{{State: make([]byte, maxState+1)},
			{Type: strings.Repeat("x", 2000)}} {
			payload, err := proto.Marshal(s)
			require.NoError(t, err)
			n.System.Root.Send(actor.NewPID(n.Address, "concord-singleton-jobs"),
				wire.Seal(from, wire.SingletonState, payload))
			synctest.Wait()
			require.EqualValues(t, i+1, n.single.Stats().Ignored)
		}
	})
}

// A state that does not arrive delays the next instance by a second.
func TestWarm_AStateThatIsLostIsWaitedForASecond(t *testing.T) {
	fails := 0
	run(t, 2, warmly(&fails), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.told(c.node(1), "first")
		isState := func(p simnet.Packet) bool {
			env, ok := p.Message.(*pb.Envelope)
			if !ok {
				return false
			}
			_, manifest, _, err := wire.Open(env, c.node(0).members().View().Cluster)
			return err == nil && manifest == wire.SingletonState
		}
		lost := c.Net.Link(c.Member(0).Address, c.Member(1).Address).Next(isState,
			simnet.Faults{Loss: 1})
		require.NoError(t, c.node(0).single.Close(context.Background()))
		c.found(c.node(1), 20*time.Second)
		require.True(t, lost())
		require.InDelta(t, 1, c.alive.gap().Seconds(), 0.1)
	})
}
