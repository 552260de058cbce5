package lookuptest_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/sharding/grains"
	"github.com/concord-go/concord/testkit"
	"github.com/concord-go/concord/testkit/lookuptest"
)

// The test of an identity lookup is one call.
func Example() {
	_ = func(t *testing.T) { // func TestLookup(t *testing.T)
		lookuptest.Run(t, lookuptest.Config{
			New: func(m *testkit.Member) (cluster.IdentityLookup, error) {
				return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2})
			},
		})
	}
}
