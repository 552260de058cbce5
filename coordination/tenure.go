package coordination

import (
	"context"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Token grows with every tenure of a lease, forever: also after a release, an expiry or a restart.
// Put it into every effect that the lease guards, and let the target reject lower tokens. It is at
// most 2^63-1, so it fits an SQL BIGINT. Renewals and repeated acquires by one session keep the
// token.
type Token = leasestore.Token

// Tenure is what guarded work needs to know about the lease it runs under. A Grant is a Tenure;
// work that must not release the lease is given a Tenure instead of the Grant.
type Tenure interface {
	Token() Token
	// Context ends when work must stop: Config.Drain before another session can hold the lease, or
	// at once if another session already holds it. Its Cause is a *LostError or ErrReleased.
	// FromContext returns the tenure of this context.
	Context() context.Context
	// Check compares the clock with the deadline. It returns nil while new work may start, and a
	// *LostError or ErrReleased afterwards. It does not depend on a timer, so it is right
	// immediately after a pause of the process. It never blocks, does no I/O and does not allocate.
	// Call it before each guarded action.
	Check() error
}

// FromContext returns the tenure under which ctx runs.
func FromContext(ctx context.Context) (Tenure, bool) {
	t, ok := ctx.Value(tenureKey{}).(Tenure)
	return t, ok
}

type tenureKey struct{}
