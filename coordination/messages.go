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
	// AcquireResult reports to an actor that AcquireTo ended without a grant.
	AcquireResult struct{ Err error }
)
