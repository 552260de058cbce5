package sharding_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// An entity gets Config.StopMessage behind its messages, and stops itself, now or later: with its
// shard, and when it passivates itself. Messages that come meanwhile go to the next incarnation.
func TestStopMessage_AnEntityStopsItself(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 4, StopMessage: wrapperspb.Bool(true)}
	}
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			usual := &entity{node: n, Entity: e}
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *wrapperspb.BoolValue:
					n.c.alive.note(e.ID, "asked to stop")
					time.AfterFunc(100*time.Millisecond, func() {
						n.System.Root.Send(ctx.Self(), wrapperspb.Int32(1))
					})
				case *wrapperspb.Int32Value:
					n.c.alive.note(e.ID, "stops")
					ctx.Stop(ctx.Self())
				default:
					usual.Receive(ctx)
				}
			})
		}
	}
	run(t, 2, options{cfg: cfg, produce: produce}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(1)
		n.tell("x", "1")
		n.tell("x", "passivate")
		n.tell("x", "2")
		time.Sleep(50 * time.Millisecond)
		n.tell("x", "3") // it has been asked to stop
		time.Sleep(time.Second)
		require.Equal(t, []string{"1", "2", "asked to stop", "stops", "3"}, c.alive.notes("x "))
		require.Equal(t, 2, c.alive.starts)

		host := c.alive.host("x")
		other := c.node(1 - host.Index)
		other.tell("x", "4")
		go func() { require.NoError(t, host.leave(20*time.Second)) }()
		for k := range 5 {
			time.Sleep(40 * time.Millisecond)
			other.tell("x", fmt.Sprint(5+k))
		}
		c.settled(20*time.Second, other)
		other.tell("x", "10")
		time.Sleep(time.Second)
		var numbers []string
		stops := map[string]int{}
		for _, note := range c.alive.notes("x ") {
			if _, err := strconv.Atoi(note); err == nil {
				numbers = append(numbers, note)
			} else {
				stops[note]++
			}
		}
		require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, numbers)
		require.Equal(t, map[string]int{"asked to stop": 2, "stops": 2}, stops)
		require.Same(t, other, c.alive.host("x"))
	})
}

// An entity that does not stop when it is asked keeps its shard until HandOff. Then it is stopped;
// the messages that it got after StopMessage are lost and counted, and the next home serves it.
func TestStopMessage_AnEntityThatNeverStopsIsStopped(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 1, HandOff: 3 * time.Second,
			StopMessage: wrapperspb.String("ignored")}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		_, err := c.node(0).ask("x", "who", time.Second)
		require.NoError(t, err)
		host := c.alive.host("x")
		other := c.node(1 - host.Index)
		other.tell("x", "passivate")
		time.Sleep(100 * time.Millisecond)
		other.tell("x", "waits")
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, []string{"ignored"}, c.alive.notes("x "))
		begun := time.Now()
		require.NoError(t, host.leave(20*time.Second))
		require.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
		require.EqualValues(t, 1, host.region.Stats().Refused)
		home, err := other.ask("x", "who", time.Second)
		require.NoError(t, err)
		require.Equal(t, other.ID, home)
		require.Equal(t, []string{"ignored"}, c.alive.notes("x "))
	})
}
