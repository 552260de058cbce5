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

// An entity that does not stop when it is asked to, although its shard stays, is stopped after
// HandOff. The messages that wait start it again, and it does not exceed Limit for longer.
func TestStopMessage_PassivationIsBounded(t *testing.T) {
	const handOff = 3 * time.Second
	for name, cfg := range map[string]sharding.Config{
		"passivate": {}, "idle": {Idle: time.Minute}, "limit": {Limit: 4},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Type, cfg.Shards, cfg.HandOff = "cart", 1, handOff
			cfg.StopMessage = wrapperspb.String("ignored")
			run(t, 1, options{cfg: func(int) sharding.Config { return cfg }}, func(c *testCluster) {
				n := c.node(0)
				c.settled(20*time.Second, n)
				for k := range 100 {
					n.tell(fmt.Sprint("e", k), "1")
				}
				if name == "passivate" {
					n.tell("e0", "passivate")
				}
				time.Sleep(cfg.Idle + 100*time.Millisecond)
				if n.region.Status().Entities() < 5 {
					t.Fatal("the entities have stopped when they were asked to")
				}
				n.tell("e0", "2")
				answer, err := n.ask("e0", "3", handOff)
				require.NoError(t, err)
				require.Equal(t, "3", answer)
				require.Equal(t, []string{"1", "ignored", "2", "3"}, c.alive.notes("e0 "))
				if name == "limit" {
					time.Sleep(2 * handOff)
					require.Equal(t, 4, n.region.Status().Entities())
				}
				require.Zero(t, n.region.Stats().Refused)
			})
		})
	}
}

// An entity that does not stop when it is asked keeps its shard until HandOff. Then it is stopped,
// and the next home serves it. A message that waited for it is handled first.
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
		require.Zero(t, host.region.Stats().Refused)
		home, err := other.ask("x", "who", time.Second)
		require.NoError(t, err)
		require.Equal(t, other.ID, home)
		require.Equal(t, []string{"ignored", "waits", "ignored"}, c.alive.notes("x "))
	})
}
