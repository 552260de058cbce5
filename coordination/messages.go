package coordination

import "time"

// Messages of AcquireTo.
type (
	// Acquired reports to an actor that it holds the lease. Grant identifies the tenure.
	Acquired struct{ Grant *Grant }
	// LeaseLost reports to the holder, once per tenure, that the lease is lost. It follows the
	// message that reported the grant, and is not sent after a release. Compare Grant with the
	// present one: the loss of an old tenure may arrive when a new one has begun.
	LeaseLost struct {
		Grant *Grant
		Err   *LostError
	}
	// LeaseNearExpiry reports to the holder that renewals are failing; see Grant.OnNearExpiry.
	LeaseNearExpiry struct {
		Grant     *Grant
		Remaining time.Duration
	}
)

// Messages of the actor that Props makes. They are local: a grant has no meaning on another node.
type (
	// Acquire asks for the lease. The answer is one *AcquireResult; LeaseLost and LeaseNearExpiry
	// follow to the same sender.
	Acquire struct {
		// Wait is how long to wait for a lease that another session holds. 0 makes one attempt. A
		// negative value waits until Release or until the actor stops.
		Wait time.Duration
	}
	// AcquireResult answers Acquire with a grant, or with an error of Lease.TryAcquire or
	// Lease.Acquire.
	AcquireResult struct {
		Grant *Grant
		Err   error
	}
	// Release gives a tenure up and withdraws the pending requests of its sender. A nil Grant
	// stands for the grant that the sender holds through this actor. The answer is one
	// *ReleaseResult.
	Release struct{ Grant *Grant }
	// ReleaseResult answers Release with the error of Grant.Release. Token is zero if the sender
	// held nothing.
	ReleaseResult struct {
		Token Token
		Err   error
	}
)
