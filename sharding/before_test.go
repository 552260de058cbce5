package sharding_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// A region can be used before its member has started: messages wait for a home, and are handled in
// order once there is one.
func TestRegion_BeforeItsMemberStarts(t *testing.T) {
	before := func(n *node) {
		require.Empty(t, n.region.Entities(10))
		require.NotNil(t, n.region.PID())
		require.NoError(t, n.region.Ref("x").Tell(wrapperspb.String("first")))
		require.NoError(t, n.region.Ref("x").Tell(wrapperspb.String("second")))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := n.region.Ref("x").Ask(ctx, wrapperspb.String("who"))
		require.ErrorIs(t, err, sharding.ErrUndelivered, "a call that gave up left nothing behind")
	}
	run(t, 1, options{setup: before}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		time.Sleep(time.Second)
		require.Equal(t, []string{"first", "second"}, c.alive.notes("x "))
	})
}
