package gate_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/gate"
)

func TestGate_IsOpenOnceNothingHoldsIt(t *testing.T) {
	system := actor.NewActorSystem()
	g := gate.Of(system)
	require.Same(t, g, gate.Of(system))
	states := make(chan *gate.State, 10)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if s, ok := ctx.Message().(*gate.State); ok {
			states <- s
		}
	}))
	g.Subscribe(pid)
	require.True(t, (<-states).Open)
	g.Shut("guard", "lost")
	require.Equal(t, &gate.State{Why: []string{"lost"}}, <-states)
	g.Shut("arbiter", "another fragment has it")
	g.Let("guard")
	require.Equal(t, &gate.State{Why: []string{"another fragment has it"}}, g.State())
	g.Let("arbiter")
	require.True(t, (<-states).Open, "told once, when the last lets go")
	g.Unsubscribe(pid)
	g.Shut("guard", "lost")
	require.NoError(t, system.Root.StopFuture(pid).Wait())
	require.Empty(t, states)
}
