package testkit_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/testkit"
)

// clerk uses most features of an actor.
type clerk struct {
	alarm *timer.Timer
	seen  []any
}

func (c *clerk) Receive(ctx actor.Context) {
	c.seen = append(c.seen, ctx.Message())
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Logger().Info("clerk started", slog.Int("desk", 3))
		c.alarm = timer.New(ctx.ActorSystem(), ctx.Self())
	case *add:
		ctx.Respond(&sum{m.n + 1})
	case *timer.Fired:
		if c.alarm.Mine(m) {
			ctx.Send(actor.NewPID("boss:1", "boss"), "late")
		}
	case *actor.Terminated:
		ctx.Send(actor.NewPID("boss:1", "boss"), "a child is gone")
	case string:
		c.told(ctx, m)
	}
}

func (c *clerk) told(ctx actor.Context, what string) {
	boss := actor.NewPID("boss:1", "boss")
	switch what {
	case "spawn":
		child, _ := ctx.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {
			panic("not run in isolation")
		}), "child")
		ctx.Watch(child)
		ctx.Send(child, "work")
		ctx.Stop(child)
	case "watch":
		ctx.Watch(boss)
		ctx.Unwatch(boss)
		ctx.Stop(boss)
	case "root":
		ctx.ActorSystem().Root.Send(boss, "by root")
	case "self":
		ctx.Send(ctx.Self(), "to myself")
	case "alarm":
		c.alarm.Set(time.Second, "tea")
	case "quiet":
		c.alarm.Stop()
	case "panic":
		panic("as told")
	case "stop":
		ctx.Stop(ctx.Self())
	}
}

func isolatedClerk(t testing.TB) (*testkit.Isolated, *clerk) {
	c := &clerk{}
	return testkit.Isolate(t, actor.PropsFromProducer(func() actor.Actor { return c })), c
}

func TestIsolate_EverythingIsAnEffect(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		i, c := isolatedClerk(t)
		log := testkit.ExpectEffect[*testkit.Logged](i)
		require.Equal(t, "clerk started", log.Message)
		require.Equal(t, "3", log.Attrs["desk"])
		i.ExpectNoEffect()

		i.Request(&add{1})
		reply := testkit.ExpectEffect[*testkit.Sent](i)
		require.Equal(t, &sum{2}, reply.Message)
		require.True(t, reply.To.Equal(i.Ref("test")))

		i.Send("spawn")
		child := testkit.ExpectEffect[*testkit.Spawned](i)
		require.Equal(t, "isolated/child", child.PID.Id)
		require.NotNil(t, child.Props)
		require.True(t, testkit.ExpectEffect[*testkit.Watched](i).PID.Equal(child.PID))
		require.Equal(t, "work", testkit.ExpectEffect[*testkit.Sent](i).Message)
		require.True(t, testkit.ExpectEffect[*testkit.StopRequested](i).PID.Equal(child.PID))
		for range 2 { // notified as its parent and as its watcher
			require.Equal(t, "a child is gone", testkit.ExpectEffect[*testkit.Sent](i).Message)
		}

		i.Send("watch")
		effects := i.Effects()
		require.Len(t, effects, 3)
		require.IsType(t, &testkit.Watched{}, effects[0])
		require.IsType(t, &testkit.Unwatched{}, effects[1])
		require.Equal(t, "boss", effects[2].(*testkit.StopRequested).PID.Id)

		i.Send("root")
		require.Equal(t, "by root", testkit.ExpectEffect[*testkit.Sent](i).Message)
		i.Send("self")
		require.True(t, testkit.ExpectEffect[*testkit.Sent](i).To.Equal(i.PID()))
		i.Send("sync")
		require.Contains(t, c.seen, "to myself", "what it sends to itself is delivered")

		i.Terminate(i.Ref("boss"))
		require.Equal(t, "a child is gone", testkit.ExpectEffect[*testkit.Sent](i).Message)
		i.Send("stop")
		testkit.ExpectEffect[*testkit.Stopped](i)
	})
}

func TestIsolate_TimersOnVirtualTime(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		i, _ := isolatedClerk(t)
		i.Effects()
		i.Send("alarm")
		require.Equal(t, []testkit.Effect{&testkit.Armed{In: time.Second, Tag: "tea"}}, i.Effects(),
			"seen when armed")
		i.Send("alarm") // replaces the earlier one
		i.Send("quiet")
		i.Send("quiet")
		i.Send("alarm")
		require.Equal(t, []testkit.Effect{
			&testkit.Armed{In: time.Second, Tag: "tea"}, &testkit.Disarmed{Tag: "tea"},
			&testkit.Armed{In: time.Second, Tag: "tea"},
		}, i.Effects())
		fired := testkit.ExpectEffect[*testkit.Fired](i)
		require.Equal(t, "tea", fired.Tag)
		require.Equal(t, time.Second, fired.After)
		require.Equal(t, "late", testkit.ExpectEffect[*testkit.Sent](i).Message)
	})
}

func TestIsolate_PanicIsAnEffect(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		i, _ := isolatedClerk(t)
		i.Send("panic")
		require.Equal(t, "as told", testkit.ExpectEffect[*testkit.Panicked](i).Reason)
		i.Request(&add{4}) // after its restart
		require.Equal(t, &sum{5}, testkit.ExpectEffect[*testkit.Sent](i).Message)
	})
}

func TestIsolate_Fails(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			i, _ := isolatedClerk(tb)
			i.Request(&add{1})
			testkit.ExpectEffect[*testkit.Spawned](i)
		}), "expected the effect *testkit.Spawned, there is none", "It has done, in order:",
			"waiting  logged INFO  clerk started desk=3",
			"waiting  sent *testkit_test.sum{n:2} to elsewhere:1/test, sender nobody")
		says(t, failing(t, func(tb testing.TB) {
			i, _ := isolatedClerk(tb)
			i.Effects()
			i.Send("watch")
			i.ExpectNoEffect()
		}), "expected no effect, got: watched boss:1/boss", "taken    logged",
			"taken    told to stop boss:1/boss")
		says(t, failing(t, func(tb testing.TB) {
			i, _ := isolatedClerk(tb)
			i.Send("stop")
			testkit.ExpectEffect[*testkit.Stopped](i)
			time.Sleep(time.Millisecond)
			i.Send("anybody there?")
		}), `sent "anybody there?" to the isolated actor, which has stopped`)
		says(t, failing(t, func(tb testing.TB) {
			i := testkit.Isolate(tb, actor.PropsFromFunc(func(ctx actor.Context) {
				if ctx.Message() == "sleep" {
					time.Sleep(4 * time.Second)
				}
			}))
			i.Send("sleep")
		}), `the actor has not finished with "sleep" within 3s`, "It has done nothing.")
	})
}
