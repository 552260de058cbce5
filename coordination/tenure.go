package coordination

import (
	"context"
	"strconv"
)

// Token grows with every tenure of a lease, for ever: after a release, an expiry, a restart. Put it
// into every effect the lease guards, and let the target refuse lower ones. It is at most 2^63-1, so
// it fits an SQL BIGINT. Renewals and repeated acquires by one session keep it.
type Token uint64

func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Tenure is what guarded work needs to know of the lease it runs under. Grant is one; work that must
// not release the lease of its manager is handed a Tenure.
type Tenure interface {
	Token() Token
	// Context ends when work must stop: Config.Drain before anybody else can hold the lease, or at
	// once if somebody does. Its Cause is a *LostError or ErrReleased, and FromContext finds the
	// tenure in it.
	Context() context.Context
	// Check compares the clock with the deadline: nil while new work may start, else a *LostError or
	// ErrReleased. It asks no timer, so it is right at once after a pause of the process. It never
	// blocks, does no I/O and does not allocate. Call it before each guarded action.
	Check() error
}

// FromContext returns the tenure under which ctx runs.
func FromContext(ctx context.Context) (Tenure, bool) {
	t, ok := ctx.Value(tenureKey{}).(Tenure)
	return t, ok
}

type tenureKey struct{}
