package singleton_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/singleton"
)

// sickly is an instance that panics in Started, or stops itself, at the members that are sick.
type sickly struct {
	worker
	sick, ends bool
	tries      *atomic.Int64
}

func (s *sickly) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok && s.sick {
		s.tries.Add(1)
		if s.ends {
			s.worker.Receive(ctx)
			ctx.Stop(ctx.Self())
			return
		}
		panic("cannot start here")
	}
	if s.sick && !s.ends {
		return // it has not started
	}
	s.worker.Receive(ctx)
}

// failing configures at how many of the first members instances fail, and counts the tries of each
// member.
type failing struct {
	sick  atomic.Int64
	ends  bool // they stop themselves, instead of panicking
	tries [3]atomic.Int64
}

func (f *failing) options() options {
	return options{produce: func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
		i := slices.Index([]string{"m000", "m001", "m002"}, n.ID)
		return func(t coordination.Tenure) actor.Actor {
			return &sickly{worker: worker{node: n, tenure: t}, sick: int64(i) < f.sick.Load(),
				ends: f.ends, tries: &f.tries[i]}
		}
	}}
}

// Without this package, Proto.Actor restarts such an instance ten times at once, forever again, and
// the lease stays there.
func TestScenario_AnInstanceThatCannotStartMovesOn(t *testing.T) {
	for name, ends := range map[string]bool{"it panics": false, "it ends itself": true} {
		t.Run(name, func(t *testing.T) {
			f := failing{ends: ends}
			f.sick.Store(1)
			run(t, 3, f.options(), func(c *testCluster) {
				c.Member(2).System.Root.Send(c.node(2).single.PID(), wrapperspb.String("kept"))
				time.Sleep(6 * time.Second) // Settle, and 100+200+400+800 ms
				host, _ := c.found(c.node(2), time.Second)
				require.Equal(t, "m001", host)
				require.EqualValues(t, 5, f.tries[0].Load())
				if !ends {
					require.Equal(t, []string{"kept"}, c.alive.notes(),
						"by those that never started")
				}
				time.Sleep(time.Hour)
				host, _ = c.found(c.node(0), time.Second)
				require.Equal(t, "m001", host, "it stays")
				require.EqualValues(t, 5, f.tries[0].Load())
			})
		})
	}
}

// An instance whose store does not answer fails after a timeout, which may be longer than
// MaxBackoff: the member made it again for ever, and no other one hosted.
func TestFailing_AfterATimeoutMovesOnToo(t *testing.T) {
	for _, where := range []string{"in the function", "in Started", "in a message"} {
		t.Run(where, func(t *testing.T) {
			var well atomic.Bool
			fails := func(at string) {
				if at == where && !well.Load() {
					time.Sleep(12 * time.Second)
					panic("the store does not answer")
				}
			}
			produce := func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
				return func(tenure coordination.Tenure) actor.Actor {
					w := &worker{node: n, tenure: tenure}
					if n.ID != "m000" {
						return w
					}
					fails("in the function")
					return actor.ReceiveFunc(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *actor.Started:
							fails("in Started")
						case *wrapperspb.StringValue:
							fails("in a message")
						}
						w.Receive(ctx)
					})
				}
			}
			run(t, 2, options{produce: produce}, func(c *testCluster) {
				for range 8 {
					c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("x"))
				}
				time.Sleep(2 * time.Minute)
				host, _ := c.found(c.node(1), time.Second)
				well.Store(true)
				require.Equal(t, "m001", host)
			})
		})
	}
}

// If instances fail everywhere, the members take turns, with back-off, and the first healthy one
// hosts.
func TestFailing_EverywhereIsTriedInTurns(t *testing.T) {
	var f failing
	f.sick.Store(2)
	o := f.options()
	o.cfg = singleton.Config{MinBackoff: 50 * time.Millisecond,
		MaxBackoff: 2 * time.Second, Tries: 3}
	run(t, 2, o, func(c *testCluster) {
		time.Sleep(5 * time.Minute)
		first, second := f.tries[0].Load(), f.tries[1].Load()
		require.Greater(t, first, int64(3), "more than one turn")
		require.Greater(t, second, int64(3))
		require.Less(t, first+second, int64(300), "one a second")
		require.Zero(t, c.alive.count())
		f.sick.Store(1)
		time.Sleep(time.Minute) // each member has its turn
		host, _ := c.found(c.node(0), time.Second)
		require.Equal(t, "m001", host)
	})
}

// The wait between two attempts doubles from MinBackoff to MaxBackoff, and a member makes Tries
// attempts before it lets another one host.
func TestFailing_TheWaitIsConfigured(t *testing.T) {
	var f failing
	f.sick.Store(1)
	o := f.options()
	o.cfg = singleton.Config{MinBackoff: time.Second, MaxBackoff: 4 * time.Second, Tries: 6}
	run(t, 2, o, func(c *testCluster) {
		var at []time.Duration // of each attempt, after the first
		var first time.Time
		for n := int64(0); n < 6; {
			if made := f.tries[0].Load(); made > n {
				if n = made; n == 1 {
					first = time.Now()
				}
				at = append(at, time.Since(first).Round(time.Second))
			}
			time.Sleep(100 * time.Millisecond) // virtual
		}
		require.Equal(t, []time.Duration{0, 1e9, 3e9, 7e9, 11e9, 15e9}, at)
		time.Sleep(10 * time.Second)
		host, _ := c.found(c.node(1), time.Second)
		require.Equal(t, "m001", host)
		require.EqualValues(t, 6, f.tries[0].Load())
	})
}

// A panic loses only the message that caused it; the messages behind it wait for the back-off.
func TestFailing_APanicKeepsTheMailbox(t *testing.T) {
	run(t, 2, options{cfg: singleton.Config{MinBackoff: time.Second}}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		send := func(text string) {
			c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String(text))
		}
		send("nap")
		send("panic")
		send("behind")
		time.Sleep(500 * time.Millisecond)
		send("later")
		require.Empty(t, c.alive.notes())
		time.Sleep(time.Second)
		require.Equal(t, []string{"behind", "later"}, c.alive.notes())
	})
}
