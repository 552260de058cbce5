package memory_test

import (
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/documenttest"
)

func TestDocuments(t *testing.T) {
	documenttest.Run(t, func(*testing.T) (a, b leasestore.Documents) {
		s := memory.New()
		return s, s
	})
}
