package remembertest_test

import (
	"testing"

	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/testkit/remembertest"
)

// The test of a store of remembered entities is one call, with the stores of two members.
func Example() {
	_ = func(t *testing.T) { // func TestRemember(t *testing.T)
		remembertest.Run(t, func(*testing.T) (a, b sharding.RememberStore) {
			store := &remembertest.Memory{}
			return store, store
		})
	}
}
