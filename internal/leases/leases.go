// Package leases connects the leases of package coordination with the components that hold leases
// for their users: node, singleton and sharding. Programs need none of it, so it is not part of
// package coordination, which sets Held when it is initialized.
package leases

import (
	"context"
	"time"
)

// Blank identifies the record that a session left behind when it released a lease. The zero Blank
// carries no information.
type Blank struct {
	Version string
	Token   uint64
}

// Held are functions of package coordination. A session is a *coordination.Session, a lease a
// *coordination.Lease, and a grant a *coordination.Grant.
var Held struct {
	// AcquireBlank is like Lease.Acquire for a session that received the Blank of the lease from
	// its last holder. It claims the lease without reading the record first, which saves one call
	// of the store. If the record has been written since, the claim fails and AcquireBlank
	// continues like Acquire. A Blank that did not come from Yield for this lease may break the
	// promise that tokens grow, so accept one only from trusted members. The grant is nil if there
	// is an error.
	AcquireBlank func(ctx context.Context, lease any, b Blank) (grant any, err error)
	// Yield is Grant.Release for a hand-over. It also returns the record it left behind, for
	// AcquireBlank in the session that takes the lease over. The Blank is zero if that record is
	// not known, even when the error is nil: if the grant was already over, or another call
	// released it.
	Yield func(ctx context.Context, grant any) (Blank, error)
	// Abandon ends the tenure without releasing the lease, for work that does not stop in time:
	// Check fails and Context ends with the cause Closed, as when the session is closed. No
	// session, this one included, acquires the lease before Release is called or the tenure has
	// expired.
	Abandon func(grant any)
	// Previous returns the token of the tenure before that of a grant, whichever session held it;
	// no other tenure was in between. It is 0 if there was none, or if the store has lost it, and a
	// number that no tenure has had if the store shows a larger token for a free lease. State that
	// carries this token is therefore the last that was written before the grant.
	Previous func(grant any) uint64
	// Renewed waits until a renewal shows that the holder of the lease is alive, or until nobody
	// holds the lease. The error matches coordination.ErrUnknown if ctx ends first.
	Renewed func(ctx context.Context, lease any) error
	// Observe follows the holder of the lease without claiming the lease, until stop is called.
	Observe func(lease any) (stop func())
	// Drain returns Config.Drain of a session: the time that guarded work has to stop.
	Drain func(session any) time.Duration
	// CheckName returns an error that matches coordination.ErrInvalid and says why if name is not a
	// valid name of a lease.
	CheckName func(name string) error
	// Broken returns an error if a panic of this library's own code has ended a session, and for a
	// minute after a panic that has not, and coordination.ErrClosed after Close. A session that has
	// ended has lost every grant: the process must be restarted.
	Broken func(session any) error
}
