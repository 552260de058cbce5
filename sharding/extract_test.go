package sharding_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// byColon returns the text before a colon as the id, and misbehaves if the message asks for it.
func byColon(region func() *sharding.Region[message]) func(any) string {
	return func(m any) string {
		id, what, _ := strings.Cut(m.(*wrapperspb.StringValue).Value, ":")
		switch what {
		case "panic":
			panic("as asked")
		case "exit":
			runtime.Goexit()
		case "block":
			time.Sleep(time.Hour)
		case "again":
			r := region()
			_ = r.Status()
			other, err := r.RefFor(wrapperspb.String("inner:sent by the extractor"))
			if err == nil {
				err = other.Tell(wrapperspb.String("inner:sent by the extractor"))
			}
			if err != nil {
				panic(err)
			}
		}
		return id
	}
}

func TestExtractor_RoutesMessagesOfEveryMember(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Extractor: byColon(nil)}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for i, n := range c.all() {
			for k := range 20 {
				m := wrapperspb.String(fmt.Sprintf("e%d:%d from %d", k, k, i))
				ref, err := n.region.RefFor(m)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint("e", k), ref.ID())
				require.NoError(t, ref.Tell(m))
				res, err := n.System.Root.RequestFuture(n.region.PID(),
					wrapperspb.String(fmt.Sprintf("e%d:asked", k)), time.Second).Result()
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("e%d:asked", k), res.(*wrapperspb.StringValue).Value)
			}
		}
		// The other member's PID accepts messages too, in order.
		from, to := c.node(0), c.node(1)
		for k := range 20 {
			from.System.Root.Send(to.region.PID(),
				wrapperspb.String(fmt.Sprintf("e7:remote %d", k)))
		}
		time.Sleep(time.Second)
		var want []string
		for k := range 20 {
			want = append(want, fmt.Sprintf("remote %d", k))
		}
		require.Equal(t, want, c.alive.notes("e7 e7:")[4:])
	})
}

// Misbehavior of the function affects only the message that it was called for.
func TestExtractor_MayDoWhatItMustNot(t *testing.T) {
	var n *node
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16,
			Extractor: byColon(func() *sharding.Region[message] {
				return n.region
			})}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		n = c.node(0)
		c.settled(20*time.Second, c.all()...)
		for text, want := range map[string]string{
			"x:panic": "Extractor panicked for a *wrapperspb.StringValue: as asked",
			"x:exit":  "ended its goroutine",
			"":        "entity id has 0 bytes", ":x": "entity id has 0 bytes",
			"a\nb:x": "control characters", strings.Repeat("x", 513): "has 513 bytes",
		} {
			_, err := n.region.RefFor(wrapperspb.String(text))
			require.ErrorIs(t, err, sharding.ErrInvalid, text)
			require.ErrorContains(t, err, want)
			before := n.region.Stats().Refused
			// in the goroutine that reads
			c.node(1).System.Root.Send(n.region.PID(), wrapperspb.String(text))
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, before+1, n.region.Stats().Refused, text)
		}
		_, err := n.region.RefFor(nil)
		require.ErrorContains(t, err, "no message")

		ref, err := n.region.RefFor(wrapperspb.String("outer:again"))
		require.NoError(t, err)
		require.Equal(t, "outer", ref.ID())
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, []string{"inner:sent by the extractor"}, c.alive.notes("inner "))

		// Calls that do not return are abandoned, and their number is bounded.
		began := time.Now()
		for range 16 {
			_, err = n.region.RefFor(wrapperspb.String("x:block"))
			require.ErrorContains(t, err, "Extractor has not returned within 1s")
		}
		require.Equal(t, 16*time.Second, time.Since(began))
		_, err = n.region.RefFor(wrapperspb.String("x:fine"))
		require.ErrorContains(t, err, "16 calls of Extractor have not returned within 1s")
		_, err = c.node(1).ask("e", "who", time.Second)
		require.NoError(t, err, "messages by id go on")
		time.Sleep(time.Hour)
		_, err = n.region.RefFor(wrapperspb.String("x:fine"))
		require.NoError(t, err, "until they have returned")
	})
}

func TestExtractor_IsOptional(t *testing.T) {
	cfg := func(i int) sharding.Config {
		cfg := config(i)
		cfg.MinMembers = 1 // without it, the first host waits for Settle
		return cfg
	}
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		_, err := n.region.RefFor(wrapperspb.String("x"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "no Extractor is set for a *wrapperspb.StringValue")
		n.System.Root.Send(n.region.PID(), wrapperspb.String("x"))
		require.EqualValues(t, 1, n.region.Stats().Refused)
		res := n.System.Root.RequestFuture(n.region.PID(), &sharding.Envelope{
			ID: "x", Message: wrapperspb.String("hello")}, time.Second)
		_, err = res.Result()
		require.NoError(t, err)
	})
}
