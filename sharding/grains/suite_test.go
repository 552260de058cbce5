package grains_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
	"github.com/concord-go/concord/testkit"
	"github.com/concord-go/concord/testkit/lookuptest"
)

func TestSuite(t *testing.T) {
	lookuptest.Run(t, suite())
}

func suite() lookuptest.Config {
	return lookuptest.Config{
		New: func(m *testkit.Member) (cluster.IdentityLookup, error) {
			return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2,
				Sharding: sharding.Config{Shards: 32}})
		},
		Check: func(ctx actor.Context) error {
			e, _ := sharding.Self(ctx)
			return e.Check()
		},
	}
}

// The baseline: what the suite finds with the lookup of Proto.Actor.
func TestSuite_FindsDoublesOfDisthash(t *testing.T) {
	n := lookuptest.Doubles(t, lookuptest.Config{
		New: func(*testkit.Member) (cluster.IdentityLookup, error) { return disthash.New(), nil },
	})
	t.Logf("messages handled by an activation after another one: %d", n)
	require.Positive(t, n)
}
