package coordination

import "time"

// Messages of AcquireTo.
type (
	// Acquired tells an actor that it holds the lease. The grant names the tenure.
	Acquired struct{ Grant *Grant }
	// LeaseLost tells the holder, once per tenure, that the lease is lost. It comes after the message
	// that told of the grant, and not after a release. Compare Grant with the present one: the loss of
	// an old tenure may arrive when a new one has begun.
	LeaseLost struct {
		Grant *Grant
		Err   *LostError
	}
	// LeaseNearExpiry tells the holder that renewals are failing; see Grant.OnNearExpiry.
	LeaseNearExpiry struct {
		Grant     *Grant
		Remaining time.Duration
	}
)

// Messages of the actor that Props makes. They are local: a grant means nothing on another node.
type (
	// Acquire asks for the lease. Answered by one *AcquireResult; LeaseLost and LeaseNearExpiry
	// follow to the same sender.
	Acquire struct {
		// Wait is how long to wait for a lease that is another's; 0 makes one attempt, a negative
		// value waits until Release or the end of the actor.
		Wait time.Duration
	}
	// AcquireResult answers Acquire: a grant, or an error as Lease.TryAcquire or Lease.Acquire
	// returns it.
	AcquireResult struct {
		Grant *Grant
		Err   error
	}
	// Release gives a tenure up and withdraws what its sender still waits for. Without a grant it is
	// whatever the sender holds here. Answered by one *ReleaseResult.
	Release struct{ Grant *Grant }
	// ReleaseResult answers Release with the error of Grant.Release. Token is zero if the sender held
	// nothing.
	ReleaseResult struct {
		Token Token
		Err   error
	}
)
