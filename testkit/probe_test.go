package testkit_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/testkit"
)

// inBoth runs a test in real time and on virtual time.
func inBoth(t *testing.T, test func(t *testing.T)) {
	t.Run("real time", test)
	t.Run("virtual time", func(t *testing.T) { testkit.Bubble(t, test) })
}

type (
	add    struct{ n int }
	sum    struct{ n int }
	silent struct{}
)

// adder answers add with the sum so far, stops on "stop", and forwards other messages.
func adder(system *actor.ActorSystem) *actor.PID {
	total := 0
	return system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *add:
			total += m.n
			if ctx.Sender() != nil {
				ctx.Request(ctx.Sender(), &sum{total})
			}
		case string:
			ctx.Stop(ctx.Self())
		}
	}))
}

func TestProbe_RequestAndExpect(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p, pid := testkit.NewProbe(t, system), adder(system)
		p.Request(pid, &add{2})
		p.Request(pid, &add{3})
		require.Equal(t, 2, testkit.Expect[*sum](p).n)
		require.Equal(t, &sum{5}, testkit.Expect[any](p))
		require.Equal(t, pid.Id, p.Sender().Id)
		p.ExpectNone(10 * time.Millisecond)
		p.Send(pid, &silent{})
		p.ExpectNone(10 * time.Millisecond)
	})
}

func TestProbe_WrongTypeTellsEverythingSeen(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			p, q := testkit.NewProbe(tb, system), testkit.NewProbe(tb, system)
			p.Ignore(func(m any) bool { _, ok := m.(*silent); return ok })
			q.Request(p.PID(), wrapperspb.String("first"))
			q.Request(p.PID(), &silent{})
			q.Send(p.PID(), &add{7})
			q.Send(p.PID(), "last")
			testkit.Expect[*wrapperspb.StringValue](p)
			time.Sleep(10 * time.Millisecond)
			testkit.Expect[*sum](p)
		}), "probe nonhost/probe", "expected *testkit_test.sum, got *testkit_test.add{n:7}",
			"It has seen, in order:",
			"1 ", "taken", `*wrapperspb.StringValue{value:"first"} from nonhost/probe`,
			"2 ", "ignored", "*testkit_test.silent{} from nonhost/probe",
			"3 ", "taken", "*testkit_test.add{n:7} from nobody",
			"4 ", "waiting", `"last" from nobody`)
	})
}

func TestProbe_NothingCame(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Timeout = 20 * time.Millisecond
			testkit.Expect[*sum](p)
		}), "expected *testkit_test.sum, got nothing for 20ms", "It has seen nothing.")
	})
	says(t, failing(t, func(tb testing.TB) {
		p := testkit.NewProbe(tb, testkit.NewSystem(tb))
		p.Timeout = time.Millisecond
		testkit.Expect[any](p)
	}), "expected interface {}, got nothing")
}

func TestProbe_ExpectNoneFailsAtOnce(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		start := time.Now()
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			time.AfterFunc(time.Second, func() { p.Send(p.PID(), "x") })
			p.ExpectNone(time.Hour)
		}), "expected nothing for 1h0m0s, got \"x\" after 1s")
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestProbe_ReceiveAndFish(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p := testkit.NewProbe(t, system)
		for n := range 10 {
			p.Send(p.PID(), &add{n})
			p.Send(p.PID(), "between")
		}
		require.Len(t, p.Receive(4), 4)
		got := testkit.Fish(p, func(a *add) testkit.Outcome {
			switch {
			case a.n == 7:
				return testkit.Done
			case a.n%2 == 0:
				return testkit.Collect
			}
			return testkit.Continue
		})
		require.Equal(t, []*add{{2}, {4}, {6}, {7}}, got)
	})
}

func TestProbe_ReceiveAndFishFail(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Send(p.PID(), "one")
			p.Receive(2)
		}), "expected 2 messages, got 1 in 3s", "taken", `"one"`)
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Send(p.PID(), &add{1})
			p.Send(p.PID(), &sum{2})
			testkit.Fish(p, func(*add) testkit.Outcome { return testkit.Collect })
		}), "fished for *testkit_test.add for 3s in vain: collected 1 of 2 messages", "add{n:1}",
			"sum{n:2}")
	})
}

func TestProbe_WithinBoundsAll(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := testkit.NewProbe(t, testkit.NewSystem(t))
		p.Within(time.Hour, func() {
			require.Equal(t, time.Hour, p.Remaining())
			time.AfterFunc(30*time.Minute, func() { p.Send(p.PID(), "late") })
			testkit.Expect[any](p)
			p.Within(2*time.Hour, func() { require.Equal(t, 30*time.Minute, p.Remaining()) })
		})
		require.Equal(t, 3*time.Second, p.Remaining())
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Within(time.Second, func() { time.Sleep(2 * time.Second) })
		}), "expected to be done within 1s, took 2s")
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Within(time.Second, func() {
				time.Sleep(900 * time.Millisecond)
				testkit.Expect[any](p)
			})
		}), "got nothing for 100ms")
	})
}

func TestProbe_WatchAndExpectTerminated(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p, pid := testkit.NewProbe(t, system), adder(system)
		p.Watch(pid)
		p.Send(p.PID(), "stays")
		p.Send(pid, "stop")
		p.ExpectTerminated(pid)
		require.Equal(t, "stays", testkit.Expect[any](p))
		p.Watch(pid) // already stopped
		p.ExpectTerminated(pid)
	})
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			p, pid := testkit.NewProbe(tb, system), adder(system)
			defer system.Root.Stop(pid)
			p.Watch(pid)
			p.ExpectTerminated(pid)
		}), "expected nonhost/$", "to stop, it is still there after 3")
		says(t, failing(t, func(tb testing.TB) {
			testkit.NewProbe(tb, testkit.NewSystem(tb)).Watch(actor.NewPID("far:1", "x"))
		}), "cannot watch far:1/x")
	})
}

func TestProbe_ReplyAndForward(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		a, b, c := testkit.NewProbe(t, system), testkit.NewProbe(t, system),
			testkit.NewProbe(t, system)
		a.Request(b.PID(), "question")
		testkit.Expect[any](b)
		b.Forward(c.PID())
		require.Equal(t, "question", testkit.Expect[any](c))
		c.Reply("answer")
		require.Equal(t, "answer", testkit.Expect[any](a))
		require.True(t, a.Sender().Equal(c.PID()))
	})
	says(t, failing(t, func(tb testing.TB) {
		p := testkit.NewProbe(tb, testkit.NewSystem(tb))
		p.Send(p.PID(), "anonymous")
		testkit.Expect[any](p)
		p.Reply("to whom?")
	}), `nobody to reply to: the message taken last, "anonymous", has no sender`)
	says(t, failing(t, func(tb testing.TB) {
		p := testkit.NewProbe(tb, testkit.NewSystem(tb))
		p.Forward(p.PID())
	}), "nothing to forward: no message has been taken")
}

func TestProbe_AutopilotAndIgnore(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p, q := testkit.NewProbe(t, system), testkit.NewProbe(t, system)
		p.Autopilot(func(ctx actor.Context) {
			if a, ok := ctx.Message().(*add); ok {
				ctx.Respond(&sum{a.n + 1})
			}
		})
		q.Request(p.PID(), &add{1})
		require.Equal(t, 2, testkit.Expect[*sum](q).n)
		testkit.Expect[*add](p)
		p.Autopilot(nil)
		q.Request(p.PID(), &add{1})
		testkit.Expect[*add](p)
		q.ExpectNone(5 * time.Millisecond)

		p.Send(p.PID(), "waits")
		p.Send(p.PID(), &add{9})
		time.Sleep(5 * time.Millisecond)
		p.Ignore(func(m any) bool { _, ok := m.(string); return ok })
		p.Send(p.PID(), "comes")
		require.Equal(t, 9, testkit.Expect[*add](p).n)
		p.ExpectNone(5 * time.Millisecond)
	})
}

func TestProbe_TakesAnyNumberFromManyAtOnce(t *testing.T) {
	system := testkit.NewSystem(t)
	p := testkit.NewProbe(t, system)
	for range 10 {
		go func() {
			for n := range 1000 {
				p.Send(p.PID(), n)
			}
		}()
	}
	require.Len(t, p.Receive(10_000), 10_000)
}

func TestEventually(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		start := time.Now()
		testkit.Eventually(t, time.Hour, func() error {
			if time.Since(start) < 30*time.Minute {
				return errTooEarly
			}
			return nil
		})
		require.InDelta(t, 30, time.Since(start).Minutes(), 1)
		tries := 0
		says(t, failing(t, func(tb testing.TB) {
			testkit.Eventually(tb, time.Minute, func() error { tries++; return errTooEarly })
		}), "not within 1m0s, tried 1", "times, last: too early")
		require.GreaterOrEqual(t, tries, 100)
	})
}

func TestProbe_ExpectAllOfAndAnyOf(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		p := testkit.NewProbe(t, testkit.NewSystem(t))
		for _, m := range []any{wrapperspb.Int64(1), "b", &sum{2}, "b", "c"} {
			p.Send(p.PID(), m)
		}
		p.ExpectAllOf("b", &sum{2}, wrapperspb.Int64(1))
		require.Equal(t, "b", p.ExpectAnyOf("a", "b"))
		p.ExpectAllOf("c")
	})
	testkit.Bubble(t, func(t *testing.T) {
		probe := func(tb testing.TB, messages ...any) *testkit.Probe {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			for _, m := range messages {
				p.Send(p.PID(), m)
			}
			return p
		}
		says(t, failing(t, func(tb testing.TB) { probe(tb, "a").ExpectAllOf("a", "b") }),
			`expected "b", got nothing more for 3s`)
		says(t, failing(t, func(tb testing.TB) { probe(tb, "a", "a").ExpectAllOf("a", "b") }),
			`expected "b", got "a"`)
		says(t, failing(t, func(tb testing.TB) { probe(tb, "c").ExpectAnyOf("a", &sum{1}) }),
			`expected one of "a", *testkit_test.sum{n:1}, got "c"`)
	})
}

func TestProbe_FishLeavesOrFails(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		judge := func(m any) testkit.Outcome {
			switch m {
			case "a":
				return testkit.Collect
			case "end":
				return testkit.Leave
			}
			return testkit.Unwanted
		}
		p := testkit.NewProbe(t, testkit.NewSystem(t))
		for _, m := range []string{"a", "a", "end"} {
			p.Send(p.PID(), m)
		}
		require.Equal(t, []any{"a", "a"}, testkit.Fish(p, judge))
		p.ExpectAllOf("end")
		says(t, failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			p.Send(p.PID(), "a")
			p.Send(p.PID(), &sum{7})
			testkit.Fish(p, judge)
		}), "fished for interface {} and caught an unwanted message: *testkit_test.sum{n:7}")
	})
}

func TestProbe_WithinReturnsTheTime(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := testkit.NewProbe(t, testkit.NewSystem(t))
		took := p.Within(time.Minute, func() { time.Sleep(3 * time.Second) })
		require.Equal(t, 3*time.Second, took)
	})
}
