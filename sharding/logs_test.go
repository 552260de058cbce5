package sharding_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// newSystem creates the actor system of a member; with CONCORD_LOG=1 its log is shown.
func (c *testCluster) newSystem(id string) *actor.ActorSystem {
	h := c.opts.log
	switch {
	case h != nil:
	case os.Getenv("CONCORD_LOG") == "":
		return simnet.NewSystem(id)
	default:
		h = slog.Default().Handler()
	}
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(h).With("at", id)
	}))
	s.ID = id
	return s
}

// warnings are the lines of all members from Warn.
type warnings struct{ child.Screen }

func (w *warnings) handler() slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})
}

// While the lease store does not answer, each shard tries once a second: these were as many lines
// a second as the type has shards. The session warns of it.
func TestLog_AnOutageOfTheStoreIsALineInTenSeconds(t *testing.T) {
	var log child.Screen
	run(t, 2, options{log: slog.NewTextHandler(&log, nil)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for _, n := range c.all() {
			n.store.away(true)
		}
		time.Sleep(time.Minute)
		lines := log.With("lease of a shard not acquired")
		require.NotEmpty(t, lines)
		require.LessOrEqual(t, len(lines), 2*6)
		last := lines[len(lines)-1]
		require.Contains(t, last, "store away")
		require.NotContains(t, last, "unlogged=0", "the others are counted")
		for _, n := range c.all() {
			n.store.away(false)
		}
		c.settled(time.Minute, c.all()...)
	})
}

// Each shard at a member without a majority wrote lines of its own: a type has 256 shards by
// default. The first failed call is a line, and that the member gives up its shards is another.
func TestLog_NoMajorityToRememberIsTwoLines(t *testing.T) {
	var log warnings
	two := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Remember: true, MinMembers: 2}
	}
	run(t, 2, options{cfg: two, majority: true, log: log.handler()}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		c.crash(c.node(0))
		time.Sleep(2 * time.Minute)
		for _, n := range []string{"m000", "m001"} {
			lines := log.With("at=" + n + " sharding=cart")
			require.Len(t, lines, 2)
			require.Contains(t, lines[0], "no majority, or the store fails")
			require.Contains(t, lines[1], "store of remembered entities fails")
		}
	})
}

// An entity that panics was restarted without a line above Info, and nothing showed where it
// panicked.
func TestLog_APanicOfAnEntityHasItsStack(t *testing.T) {
	var log warnings
	nilly := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			if e.ID == "unmade" {
				panic("not made")
			}
			return &entity{node: n, Entity: e}
		}
	}
	run(t, 1, options{log: log.handler(), produce: nilly}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(0)
		for range 5 {
			require.NoError(t, n.region.Ref("bad").Tell(wrapperspb.String("panic")))
		}
		time.Sleep(10 * time.Second)
		require.NoError(t, n.region.Ref("bad").Tell(wrapperspb.String("panic")))
		_, err := n.ask("bad", "who", time.Minute)
		require.NoError(t, err)
		lines := log.With("entity panicked")
		require.Len(t, lines, 2)
		require.Contains(t, lines[1], "unlogged=4")
		for _, part := range []string{"level=ERROR", "entity=bad", `reason="as asked"`,
			"message=*wrapperspb.StringValue", "sharding_test.(*entity).handle"} {
			require.Contains(t, lines[0], part)
		}
		require.NoError(t, n.region.Ref("unmade").Tell(wrapperspb.String("who")))
		time.Sleep(time.Minute)
		lines = log.With("entity could not be created")
		require.NotEmpty(t, lines)
		require.Contains(t, lines[0], "sharding_test.TestLog_APanicOfAnEntityHasItsStack")
		_, err = n.ask("unmade", "who", time.Hour)
		require.ErrorIs(t, err, sharding.ErrUndelivered)
		require.ErrorContains(t, err, "the log of the member that refused it has the reason")
		require.Contains(t, log.With("message refused")[0], "the entity failed too often")
	})
}
