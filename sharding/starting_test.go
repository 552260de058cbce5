package sharding_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/sharding"
)

// unsound panics in Started as often as asked.
type unsound struct {
	*entity
	starts *atomic.Int64
	panics int64
}

func (u *unsound) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		if u.starts.Add(1) <= u.panics {
			panic("not yet")
		}
	}
	u.entity.Receive(ctx)
}

// A worker, or an entity, that panics in Started is created again after each pause once, and not
// eleven times at once.
func TestStarted_APanicInItIsFollowedByAPause(t *testing.T) {
	for name, daemons := range map[string]bool{"worker": true, "entity": false} {
		t.Run(name, func(t *testing.T) {
			const panics = 5
			var starts atomic.Int64
			produce := func(n *node) func(sharding.Entity) actor.Actor {
				return func(e sharding.Entity) actor.Actor {
					return &unsound{&entity{node: n, Entity: e}, &starts, panics}
				}
			}
			cfg := func(int) sharding.Config { return sharding.Config{Type: "cart", Shards: 1} }
			run(t, 1, options{produce: produce, daemons: daemons, cfg: cfg}, func(c *testCluster) {
				c.settled(20*time.Second, c.node(0))
				c.node(0).tell("0", "first")
				time.Sleep(50 * time.Millisecond)
				require.LessOrEqual(t, starts.Load(), int64(3), "at once")
				time.Sleep(10 * time.Second)
				require.Equal(t, int64(panics+1), starts.Load())
				require.Equal(t, []string{"first"}, c.alive.notes("0 "))
				require.Equal(t, uint64(panics), c.node(0).region.Stats().Failed)
			})
		})
	}
}

// Each incarnation of an entity is counted, also one that follows a panic at once.
func TestStats_StartedCountsEachIncarnation(t *testing.T) {
	var made atomic.Int64
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			made.Add(1)
			return &entity{node: n, Entity: e}
		}
	}
	run(t, 1, options{produce: produce}, func(c *testCluster) {
		n := c.node(0)
		c.settled(20*time.Second, n)
		for range 3 {
			n.tell("x", "note")
			n.tell("x", "panic")
			n.tell("x", "stop")
			time.Sleep(time.Second)
		}
		require.NoError(t, n.region.Ref("y").Tell(wrapperspb.String("note")))
		time.Sleep(time.Second)
		require.Equal(t, int64(7), made.Load())
		require.Equal(t, uint64(7), n.region.Stats().Started)
	})
}

// tardy counts how often it has started, and how often without the lease.
type tardy struct {
	*entity
	begun, late *atomic.Int64
}

func (d *tardy) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		d.begun.Add(1)
		if d.Check() != nil {
			d.late.Add(1)
		}
	}
	d.entity.Receive(ctx)
}

// A function that creates an entity takes longer than the lease lasts: the entity does not begin,
// since it is alive at another member.
func TestStarted_NotWhenTheLeaseWasLostMeanwhile(t *testing.T) {
	var slow atomic.Bool
	var late, begun atomic.Int64
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			if slow.Swap(false) {
				n.store.away(true)
				time.Sleep(time.Minute)
			}
			return &tardy{&entity{node: n, Entity: e}, &begun, &late}
		}
	}
	var log child.Screen
	o := options{produce: produce, log: slog.NewTextHandler(&log, nil)}
	run(t, 2, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		slow.Store(true)
		c.node(0).tell("x", "first")
		time.Sleep(45 * time.Second)
		home, err := c.node(0).ask("x", "who", 10*time.Second)
		require.NoError(t, err)
		require.NotEmpty(t, home)
		require.EqualValues(t, 1, begun.Load())
		time.Sleep(time.Minute)
		require.Zero(t, late.Load(), "started without the lease")
		require.Len(t, log.With("a function of the application does not return"), 1)
	})
}
