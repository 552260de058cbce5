package storetest_test

import (
	"testing"

	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit/storetest"
)

// The test of a durable store is one call. Each rule gets a new disk.
func Example() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		storetest.Run(t, func(t *testing.T) storetest.Disk {
			dir := t.TempDir()
			return storetest.Disk{Open: func() (store.Store, error) {
				return bbolt.Open(dir, bbolt.Config{})
			}}
		})
	}
}
