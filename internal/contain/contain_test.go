package contain_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
