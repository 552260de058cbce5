package early_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/early"
)

// Messages that arrive between the registration of an actor's name and the start of its mailbox are
// handled after Started, in order. With Proto.Actor's own mailbox the sender panics.
func TestMailbox_HoldsBackWhatComesBeforeTheStart(t *testing.T) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	defer system.Shutdown()
	got := make(chan string, 20)
	before := func(ctx actor.Context) { // runs in between
		system.Root.Send(ctx.Self(), 1)
		system.Root.Send(ctx.Self(), 2)
		system.Root.Poison(ctx.Self())
		system.Root.Send(ctx.Self(), 3)
	}
	receive := func(ctx actor.Context) { got <- fmt.Sprintf("%T %v", ctx.Message(), ctx.Message()) }
	own := actor.PropsFromFunc(receive, actor.WithOnInit(before))
	require.Panics(t, func() {
		_, _ = system.Root.SpawnNamed(own, "own")
	}, "Proto.Actor has been mended: this package can go")

	_, err := system.Root.SpawnNamed(actor.PropsFromFunc(receive, actor.WithOnInit(before),
		early.Mailbox()), "early")
	require.NoError(t, err)
	for _, want := range []string{"*actor.Started &{}", "int 1", "int 2", "*actor.Stopping &{}",
		"*actor.Stopped &{}"} {
		select {
		case it := <-got:
			require.Equal(t, want, it)
		case <-time.After(time.Minute):
			require.Fail(t, "nothing comes", want)
		}
	}
}
