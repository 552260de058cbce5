package singleton_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/lifecycle"
	pb "github.com/concord-go/concord/proto"
)

// trap is the log of a member. It panics at a message, a number of times, and so plants a panic
// where this package logs.
type trap struct {
	slog.Handler
	mu   *sync.Mutex
	left map[string]int // by member and message
	hits map[string]int
}

func newTrap(left map[string]int) (*trap, *bytes.Buffer) {
	var out bytes.Buffer
	return &trap{Handler: slog.NewTextHandler(&out, nil), mu: &sync.Mutex{}, left: left,
		hits: map[string]int{}}, &out
}

func (h *trap) system(id string) *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(&member{h, id})
	}))
	s.ID = id
	return s
}

// member is the handler of one member.
type member struct {
	*trap
	id string
}

func (h *member) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *member) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.id + ": " + r.Message; h.left[at] > 0 {
		h.left[at]--
		h.hits[at]++
		panic("planted")
	}
	return h.Handler.Handle(ctx, r)
}

// A panic while an effect is carried out or after a step: it is logged with its stack, counted, and
// part of the health; the singleton runs, and every member reaches it.
func TestPanic_IsLoudAndTheSingletonGoesOn(t *testing.T) {
	for name, at := range map[string]struct{ where, while string }{
		"an effect of a proxy":     {"m001: singleton found", `"carrying out a core.Found"`},
		"the manager after a step": {"m000: singleton manager changed state", `"handling a `},
	} {
		t.Run(name, func(t *testing.T) {
			for times := 1; times <= 3; times++ {
				trap, log := newTrap(map[string]int{at.where: times})
				run(t, 3, options{system: trap.system}, func(c *testCluster) {
					time.Sleep(10 * time.Second)
					for i := range 3 {
						c.Member(i).System.Root.Send(c.node(i).single.PID(),
							wrapperspb.String("hi"))
					}
					time.Sleep(5 * time.Second)
					require.Equal(t, times, trap.hits[at.where])
					require.Len(t, c.alive.notes(), 3, "each message has been handled")
					i := 0
					if at.where[3] == '1' {
						i = 1
					}
					require.EqualValues(t, times, c.node(i).single.Stats().Panics)
					require.ErrorContains(t, lifecycle.Of(c.Member(i).System).Check(),
						"a bug of this library: singleton jobs panicked")
					trap.mu.Lock()
					require.Contains(t, log.String(), `component="singleton jobs" while=`+at.while)
					require.Contains(t, log.String(), "singleton/panic_test.go", "the stack")
					trap.mu.Unlock()
					time.Sleep(2 * time.Minute)
					require.NoError(t, lifecycle.Of(c.Member(i).System).Check())
				})
			}
		})
	}
}

// An effect that the machine waits for counts as failed: it does not wait forever.
func TestPanic_AnAttemptThatPanickedIsMadeAgain(t *testing.T) {
	trap, _ := newTrap(map[string]int{"m000: singleton instance could not be made": 2})
	f := failing{}
	opts := f.options()
	produce := opts.produce
	var calls atomic.Int64
	opts.system, opts.produce = trap.system, func(c *testCluster,
		n *node) func(coordination.Tenure) actor.Actor {
		made := produce(c, n)
		return func(t coordination.Tenure) actor.Actor {
			if calls.Add(1) <= 2 {
				return nil // is logged while the instance is started
			}
			return made(t)
		}
	}
	run(t, 3, opts, func(c *testCluster) {
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 3, calls.Load())
		require.EqualValues(t, 2, c.node(0).single.Stats().Panics)
		host, _ := c.found(c.node(2), time.Second)
		require.Equal(t, "m000", host)
	})
}

// The subscribers of the event stream are functions of the application.
func TestPanic_OfASubscriberIsNotABugOfThisPackage(t *testing.T) {
	trap, log := newTrap(nil)
	run(t, 1, options{system: trap.system}, func(c *testCluster) {
		c.Member(0).System.EventStream.Subscribe(func(e any) {
			if _, is := e.(*actor.DeadLetterEvent); is {
				panic("the application's")
			}
		})
		c.Member(0).System.Root.Send(c.node(0).single.PID(), &pb.SingletonFree{})
		time.Sleep(10 * time.Second)
		trap.mu.Lock()
		require.Contains(t, log.String(), "a function of the application failed")
		trap.mu.Unlock()
		require.Zero(t, c.node(0).single.Stats().Panics)
		require.NoError(t, lifecycle.Of(c.Member(0).System).Check())
	})
}

// Whichever effect panics at the member that hosts, and is left then: there is one instance
// afterwards, and every member reaches it.
func TestPanic_InAnyEffectTheSingletonGoesOn(t *testing.T) {
	kinds := map[string]bool{}
	for nth := 1; nth <= 60; nth++ {
		var left atomic.Int64
		var what atomic.Value
		left.Store(int64(nth))
		o := options{plant: func(effect any) {
			if left.Add(-1) == 0 {
				what.Store(fmt.Sprintf("%T", effect))
				panic("planted")
			}
		}}
		run(t, 3, o, func(c *testCluster) {
			time.Sleep(10 * time.Second)
			system := c.Member(0).System
			gate.Of(system).Shut("test", "to move")
			for range 4 {
				c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("moved"))
				time.Sleep(10 * time.Second)
			}
			require.Contains(t, c.alive.notes(), "moved", "effect %d: %s", nth, what.Load())
			gate.Of(system).Let("test")
			for left.Load() > 0 { // proxies ask each second
				time.Sleep(time.Second)
			}
			kinds[what.Load().(string)] = true
			time.Sleep(3 * stale)
			for i := range 3 {
				c.Member(i).System.Root.Send(c.node(i).single.PID(), wrapperspb.String("hi"))
			}
			time.Sleep(3 * stale)
			his := slices.DeleteFunc(c.alive.notes(), func(s string) bool { return s != "hi" })
			require.Len(t, his, 3, "effect %d: %s", nth, what.Load())
		})
	}
	t.Log(kinds)
}
