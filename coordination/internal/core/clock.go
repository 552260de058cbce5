package core

import "time"

// Reading is one reading of the clocks of a process, each as the time since an arbitrary origin. A
// clock that does not exist stays zero.
type Reading struct {
	Mono time.Duration // stops while the machine is suspended
	Boot time.Duration // continues while the machine is suspended
	Wall time.Duration // may jump in both directions
}

// Elapsed is the holder's measure of the time since an earlier reading: the largest difference that
// any clock shows. So a clock that stood still or jumped back has no effect, and a clock that
// jumped ahead makes the holder give up early. Contenders compare only Mono, where the same events
// make them wait longer.
func (r Reading) Elapsed(since Reading) time.Duration {
	return max(r.Mono-since.Mono, r.Boot-since.Boot, r.Wall-since.Wall)
}

// Validity is the right that a confirmed write gives its holder. Invariant: StopAfter <= ValidFor <
// TTL.
type Validity struct {
	Sent      Reading       // taken before the write was sent
	StopAfter time.Duration // new work may start until Sent + StopAfter
	ValidFor  time.Duration // running work may finish until Sent + ValidFor
}

// MayStart reports whether guarded work may start.
func (v Validity) MayStart(now Reading) bool { return now.Elapsed(v.Sent) < v.StopAfter }

// Remaining returns the time until running work must have finished; it is negative afterwards.
func (v Validity) Remaining(now Reading) time.Duration { return v.ValidFor - now.Elapsed(v.Sent) }
