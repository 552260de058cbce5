package documenttest_test

import (
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/documenttest"
)

// The test of the documents of a store is one call, with the stores of two processes.
func Example() {
	_ = func(t *testing.T) { // func TestDocuments(t *testing.T)
		documenttest.Run(t, func(*testing.T) (a, b leasestore.Documents) {
			store := memory.New()
			return store, store
		})
	}
}
