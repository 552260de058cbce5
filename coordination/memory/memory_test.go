package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BenchmarkSwap measures only the store.
func BenchmarkSwap(b *testing.B) {
	s := memory.New()
	var ver leasestore.Version
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if ver, err = s.Swap(b.Context(), "lease", ver, leasestore.Record{Token: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
