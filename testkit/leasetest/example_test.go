package leasetest_test

import (
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/leasetest"
)

// The test of a store is one call. Options declare its optional abilities; what is not declared is
// not checked.
func Example() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		leasetest.Run(t, func(*testing.T) coordination.Store {
			return memory.New()
		}, leasetest.Options{})
	}
}
