package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// terminate sends a manager the system message for the termination of an actor.
func terminate(t *testing.T, system *actor.ActorSystem, who string) {
	const manager = "concord-singleton-jobs"
	p, ok := system.ProcessRegistry.GetLocal(manager)
	require.True(t, ok)
	address := system.Address()
	p.SendSystemMessage(actor.NewPID(address, manager), &actor.Terminated{
		Who: actor.NewPID(address, who)})
}

// The guard of a member blocks such messages from outside. A manager that gets one nevertheless
// checks whether its instance still exists. Once, it made a second instance under the same token.
func TestForged_ATerminationIsComparedWithTheInstance(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		host, _ := c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m000", host)
		for _, who := range []string{"concord-singleton-jobs/1-1",
			"concord-singleton-jobs", "nobody"} {
			terminate(t, c.Member(0).System, who)
		}
		time.Sleep(20 * time.Second)
		require.Equal(t, []string{"m000"}, c.alive.starts)
		require.NoError(t, c.node(0).single.Close(context.Background()))
		host, _ = c.found(c.node(1), 5*time.Second)
		require.Equal(t, "m001", host, "it can still be stopped and handed over")
	})
}
