package sharding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

func TestMisuse_ARegionThatNobodyMadeIsInvalid(t *testing.T) {
	ctx, hello := t.Context(), wrapperspb.String("hello")
	var r sharding.Region[message]
	var none *sharding.Region[message]
	for call, f := range map[string]func() error{
		"Tell":         func() error { return r.Ref("a").Tell(hello) },
		"Ask":          func() error { _, err := r.Ref("a").Ask(ctx, hello); return err },
		"Deliver":      func() error { return r.Ref("a").Deliver(ctx, hello) },
		"Allocate":     func() error { return r.Allocate(ctx, nil) },
		"Allocations":  func() error { _, err := r.Allocations(ctx); return err },
		"ClusterStats": func() error { _, err := r.ClusterStats(ctx); return err },
		"Close":        func() error { return r.Close(ctx) },
		"nil Region":   func() error { return none.Ref("a").Tell(hello) },
		"zero Ref":     func() error { return sharding.Ref[message]{}.Tell(hello) },
	} {
		require.ErrorIs(t, f(), sharding.ErrInvalid, call)
	}
	require.Zero(t, sharding.Ref[message]{}.Shard())
	require.Equal(t, "no region/", sharding.Ref[message]{}.String())
}

func TestPID_TakesEnvelopesOnly(t *testing.T) {
	cfg := func(i int) sharding.Config {
		cfg := config(i)
		cfg.MinMembers = 1 // without it, the first host waits for Settle
		return cfg
	}
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		n.System.Root.Send(n.region.PID(), wrapperspb.String("x"))
		require.EqualValues(t, 1, n.region.Stats().Refused)
		res := n.System.Root.RequestFuture(n.region.PID(), &sharding.Envelope{
			ID: "x", Message: wrapperspb.String("hello")}, time.Second)
		_, err := res.Result()
		require.NoError(t, err)
	})
}
