package contain_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

func TestDeadLetter_ASubscriberMayPanic(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		system.EventStream.Subscribe(func(any) { panic("the application's") })
		contain.DeadLetter(system, actor.NewPID("nonhost", "none"), "hello")
		require.NoError(t, lifecycle.Of(system).Check())
		synctest.Wait()
	})
}

// Whatever goes to an actor that has stopped becomes a dead letter on the goroutine of its sender.
func TestSend_ASubscriberMayPanic(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		var done atomic.Bool
		var taken []string
		system.EventStream.Subscribe(func(e any) {
			taken = append(taken, fmt.Sprintf("%T", e.(*actor.DeadLetterEvent).Message))
			panic("the application's")
		})
		none := actor.NewPID("nonhost", "none")
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case string:
				contain.Send(ctx.ActorSystem(), none, 1)
				contain.Forward(ctx, none)
				contain.Watch(ctx, none)
				done.Store(true)
			case *actor.Restarting:
				t.Error("the actor panicked")
			}
		}))
		system.Root.Send(pid, "hello")
		synctest.Wait()
		require.True(t, done.Load())
		require.Equal(t, []string{"int", "string", "*actor.Watch"}, taken)
		require.NoError(t, lifecycle.Of(system).Check())
		system.Root.Stop(pid)
		synctest.Wait()
	})
}

func TestBlocking_IsOneLine(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		log := func() *slog.Logger {
			return slog.New(slog.NewTextHandler(&out, nil)).With("entity", "x")
		}
		var b contain.Blocking
		const text = "a function of the application does not return"
		run := func(n int, d time.Duration) {
			for range n {
				go func() {
					defer b.Begin(log, "a test", "it waits")()
					time.Sleep(d)
				}()
			}
			time.Sleep(d)
			synctest.Wait()
		}
		run(10, 9*time.Second)
		require.Empty(t, out.String())
		run(100, time.Minute)
		require.Equal(t, 1, strings.Count(out.String(), text))
		require.Contains(t, out.String(), `entity=x what="a test" for=10s then="it waits"`)
		run(1, time.Minute)
		require.Equal(t, 2, strings.Count(out.String(), text))
	})
}

// Each of many shards changes, and a subscriber panics each time.
func TestPublish_FailuresAreOneLineInTenSeconds(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		system := actor.NewActorSystem(actor.WithLoggerFactory(
			func(*actor.ActorSystem) *slog.Logger {
				return slog.New(slog.NewTextHandler(&out, nil))
			}))
		system.EventStream.Subscribe(func(any) { panic("the application's") })
		for range 256 {
			<-contain.Publish(system, "taking a change", "event")
		}
		contain.Call(system, "something else", func() { panic("the application's") })
		require.Equal(t, 1, strings.Count(out.String(), `what="taking a change"`))
		require.Equal(t, 1, strings.Count(out.String(), `what="something else"`))
		time.Sleep(10 * time.Second)
		<-contain.Publish(system, "taking a change", "event")
		require.Equal(t, 2, strings.Count(out.String(), `what="taking a change"`))
		require.Contains(t, out.String(), "unlogged=255")
	})
}
