package sharding_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// short returns a context that ends after a second.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (n *node) deliver(id, text string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return n.region.Ref(id).Deliver(ctx, wrapperspb.String(text))
}

// firsts returns texts without repetitions.
func firsts(texts []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range texts {
		if !seen[s] {
			out = append(out, s)
		}
		seen[s] = true
	}
	return out
}

// One member leaves and another crashes while messages are delivered from the third, each by
// several goroutines: every message is handled, those of a goroutine in order.
func TestDeliver_SurvivesMovesAndCrashes(t *testing.T) {
	run(t, 4, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		const n = 14
		var wg sync.WaitGroup
		var sent [n]int
		stop := make(chan struct{})
		for g := range n {
			wg.Go(func() {
				for k := 0; ; k++ {
					select {
					case <-stop:
						sent[g] = k
						return
					default:
					}
					if err := c.node(g%2).deliver(fmt.Sprint("e", g%7), fmt.Sprint("m", g, " ", k),
						5*time.Minute); err != nil {
						t.Errorf("goroutine %d, message %d: %v", g, k, err)
					}
					time.Sleep(time.Duration(g+1) * time.Millisecond)
				}
			})
		}
		time.Sleep(400 * time.Millisecond)
		require.NoError(t, c.node(2).leave(20*time.Second))
		c.Leave(c.Member(2))
		time.Sleep(200 * time.Millisecond)
		c.alive.forget(c.node(3))
		c.crash(c.node(3))
		time.Sleep(time.Second)
		close(stop)
		wg.Wait()
		total := 0
		for g := range n {
			require.Equal(t, texts("", sent[g]),
				firsts(c.alive.notes(fmt.Sprint("e", g%7, " m", g, " "))), "goroutine %d", g)
			total += sent[g]
		}
		again := c.node(0).region.Stats().Redelivered + c.node(1).region.Stats().Redelivered
		require.Positive(t, again, "what the crashed member had is delivered again")
		t.Logf("%d messages delivered, %d again", total, again)
	})
}

// witness is an entity that notes its deliveries, and panics as often as asked.
type witness struct {
	sharding.Entity
	w *witnessed
}

type witnessed struct {
	mu     sync.Mutex
	got    []sharding.Delivery
	panics atomic.Int64
	block  func()
}

func (w *witnessed) all() []sharding.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

func (e *witness) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.StringValue); !ok {
		return
	}
	d, ok := sharding.DeliveryOf(ctx)
	e.w.mu.Lock()
	if ok {
		e.w.got = append(e.w.got, d)
	}
	block := e.w.block
	e.w.block = nil
	e.w.mu.Unlock()
	if ok && e.w.panics.Add(-1) >= 0 {
		panic("as asked")
	}
	if block != nil {
		block()
	}
	ctx.Respond(wrapperspb.String(fmt.Sprint(ok)))
}

func witnesses(w *witnessed) func(*node) func(sharding.Entity) actor.Actor {
	return func(*node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor { return &witness{e, w} }
	}
}

// A message whose handler panics is handled again, and the entity is told.
func TestDeliver_AHandlerThatPanicsHasNotHandled(t *testing.T) {
	w := &witnessed{}
	run(t, 2, options{produce: witnesses(w)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		w.panics.Store(3)
		require.NoError(t, c.node(0).deliver("x", "poison", time.Minute))
		got := w.all()
		require.Len(t, got, 4)
		for i, d := range got {
			require.Equal(t, sharding.Delivery{ID: got[0].ID, Again: i > 0}, d)
		}
		require.NoError(t, c.node(0).deliver("x", "another", time.Minute))
		require.Len(t, w.all(), 5, "a message is handled once if nothing fails")
		require.NotEqual(t, got[0].ID, w.all()[4].ID)
		told, err := c.node(0).ask("x", "told", time.Second)
		require.NoError(t, err)
		require.Equal(t, "false", told, "this message was not delivered")
		time.Sleep(time.Minute)
		require.Len(t, w.all(), 5)
	})
}

// S38b: a handler that outlives its lease has not handled the message, since its effects may have
// been rejected.
func TestDeliver_HandlerOutlivingItsLeaseDoesNotCount(t *testing.T) {
	w := &witnessed{}
	run(t, 2, options{produce: witnesses(w)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		home, other := c.homeOf("x")
		w.block = func() {
			home.store.away(true)
			time.Sleep(ttl + 2*time.Second)
		}
		done := make(chan error, 1)
		go func() { done <- other.deliver("x", "slow", 5*time.Minute) }()
		require.NoError(t, <-done)
		got := w.all()
		require.Len(t, got, 2)
		require.Equal(t, []sharding.Delivery{{ID: got[0].ID}, {ID: got[0].ID, Again: true}}, got)
		home.store.away(false)
	})
}

// homeOf returns the node that has the shard of an entity, and another.
func (c *testCluster) homeOf(id string) (home, other *node) {
	for _, n := range c.all() {
		if n.region.Status().Shards[n.region.Ref(id).Shard()].State == sharding.Active {
			home = n
		} else {
			other = n
		}
	}
	return home, other
}

func TestDeliver_Errors(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Buffer: 16}
	}
	w := &witnessed{}
	run(t, 2, options{cfg: cfg, produce: witnesses(w)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		home, other := c.homeOf("x")
		ctx, cancel := context.WithCancel(context.Background())
		require.ErrorIs(t, other.region.Ref("").Deliver(ctx, wrapperspb.String("")),
			sharding.ErrInvalid)
		require.ErrorIs(t, other.region.Ref("x").Deliver(ctx, nil), sharding.ErrInvalid)
		large := wrapperspb.String(strings.Repeat("x", 6<<20))
		err := other.region.Ref("x").Deliver(ctx, large)
		require.ErrorIs(t, err, sharding.ErrUndelivered)
		require.ErrorContains(t, err, "message too large")

		w.panics.Store(1000)
		err = home.deliver("x", "poison", time.Minute)
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tries := len(w.all())
		require.Equal(t, 9, tries, "after 1s, 2s, 4s, 8s and every 10s")
		time.Sleep(time.Minute)
		require.Len(t, w.all(), tries, "nothing is sent after the end of the context")

		full := make(chan error, 2)
		for range 2 {
			go func() { full <- home.region.Ref("x").Deliver(ctx, wrapperspb.String("poison")) }()
			time.Sleep(time.Millisecond)
		}
		require.ErrorIs(t, home.region.Ref("x").Deliver(ctx, wrapperspb.String("third")),
			sharding.ErrBufferFull)
		cancel()
		require.ErrorIs(t, <-full, sharding.ErrUnknown)
		require.ErrorIs(t, <-full, sharding.ErrUnknown)
		require.ErrorIs(t, home.region.Ref("x").Deliver(ctx, wrapperspb.String("late")),
			sharding.ErrUndelivered)

		inDoubt := make(chan error, 1)
		go func() { inDoubt <- home.deliver("x", "poison", time.Minute) }()
		time.Sleep(time.Second)
		require.NoError(t, home.leave(20*time.Second))
		require.ErrorIs(t, <-inDoubt, sharding.ErrUnknown)
		require.ErrorIs(t, home.deliver("x", "late", time.Minute), sharding.ErrClosed)
	})
}

// A message that is too large for another member is refused before it leaves this one: Deliver and
// Ask return the reason, and a message of Tell is counted. Messages after it go on.
func TestSend_TooLargeForAnotherMember(t *testing.T) {
	large := wrapperspb.String(strings.Repeat("x", 4_000_000))
	run(t, 2, options{produce: witnesses(&witnessed{})}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		region, outcomes := c.node(0).region, map[bool]int{}
		for k := range 20 {
			ref := region.Ref(fmt.Sprint("e", k))
			before := region.Stats().Refused
			err := ref.Deliver(short(t), large)
			_, asked := ref.Ask(short(t), large)
			require.NoError(t, ref.Tell(large))
			require.NoError(t, ref.Deliver(short(t), wrapperspb.String("good")))
			outcomes[err == nil]++
			if err == nil {
				require.NoError(t, asked)
				require.Equal(t, before, region.Stats().Refused)
				continue
			}
			for _, err := range []error{err, asked} {
				require.ErrorIs(t, err, sharding.ErrUndelivered)
				require.ErrorContains(t, err, "message too large")
				require.ErrorContains(t, err, "at most 4000000")
			}
			require.Equal(t, before+3, region.Stats().Refused)
		}
		require.Len(t, outcomes, 2, "some are here")
	})
}

// A host drops a copy of a delivery that was among the last 1,024 handled in its shard, and passes
// a copy of an earlier one to its entity.
func TestDeliver_AHostKnowsTheLast1024(t *testing.T) {
	for between, times := range map[int]int{1023: 1, 1024: 2} {
		t.Run(fmt.Sprint(between), func(t *testing.T) {
			w := &witnessed{}
			run(t, 2, options{produce: witnesses(w)}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				home, other := c.homeOf("x")
				c.Net.Link(home.Address, other.Address).Set(simnet.Faults{Loss: 1})
				done := make(chan error, 1)
				go func() { done <- other.deliver("x", "not confirmed", time.Minute) }()
				time.Sleep(100 * time.Millisecond)
				for range between {
					require.NoError(t, home.deliver("x", "confirmed", time.Minute))
				}
				c.Net.Heal()
				require.NoError(t, <-done)
				first := w.all()[0].ID
				others := slices.DeleteFunc(w.all(), func(d sharding.Delivery) bool {
					return d.ID == first
				})
				require.Len(t, others, between)
				require.Equal(t, times, len(w.all())-len(others))
			})
		})
	}
}
