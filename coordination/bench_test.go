package coordination_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// held returns a grant of a session that is closed at the end of the test.
func held(tb testing.TB) *coordination.Grant {
	tb.Helper()
	session, err := coordination.Open(memory.New(), coordination.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := session.Lease("x").TryAcquire(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = g.Release(context.Background())
		if err := session.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// TestCheck_DoesNotAllocate tests the part of BenchmarkGrantCheck that does not depend on the
// machine.
func TestCheck_DoesNotAllocate(t *testing.T) {
	g := held(t)
	var err error
	if n := testing.AllocsPerRun(1000, func() { err = g.Check() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkAcquireRelease measures a tenure on a store without cost, in a session that holds other
// leases.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			session, err := coordination.Open(memory.New(), coordination.Config{})
			if err != nil {
				b.Fatal(err)
			}
			var grants []*coordination.Grant
			for i := range others {
				g, err := session.Lease(fmt.Sprint("other-", i)).TryAcquire(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				grants = append(grants, g)
			}
			lease := session.Lease("x")
			b.ReportAllocs()
			for b.Loop() {
				g, err := lease.TryAcquire(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := g.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			for _, g := range grants {
				_ = g.Release(context.Background())
			}
			if err := session.Close(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}
