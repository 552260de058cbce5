package testkit

import (
	"context"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// Tenure returns a held tenure with the given token, which must be at least 1, for tests of code
// that works under a lease, such as a singleton's actor or an entity. It is a real grant of its own
// store. end takes the tenure away: Check fails, and Context ends with a *coordination.LostError as
// its cause. Otherwise the tenure ends with the test.
func Tenure(t testing.TB, token coordination.Token) (tenure coordination.Tenure, end func()) {
	t.Helper()
	ctx := context.Background()
	store := memory.New()
	if token > 1 { // the lease has been held before
		if _, err := store.Swap(ctx, "tenure", "", leasestore.Record{
			Token: token - 1}); err != nil {
			t.Fatalf("tenure: %v", err)
		}
	}
	session, err := coordination.Open(store, coordination.Config{Owner: t.Name(), Logger: quiet})
	if err != nil {
		t.Fatalf("tenure: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	end = func() { _ = session.Close(gone) } // without a release
	t.Cleanup(end)
	grant, err := session.Lease("tenure").TryAcquire(ctx)
	if err != nil || grant.Token() != token {
		t.Fatalf("tenure with token %v: %v", token, err)
		return nil, end
	}
	return grant, end
}
