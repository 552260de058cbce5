package core

import "time"

// Reading is one look at the clocks of a process, each as time since some origin of its own. A clock
// that does not exist stays zero.
type Reading struct {
	Mono time.Duration // stops while the machine is suspended
	Boot time.Duration // runs on while it is suspended
	Wall time.Duration // may jump in both directions
}

// Elapsed is a holder's measure of the time since an earlier reading: the largest that any clock
// shows. A clock that stood still or jumped back is outvoted, one that jumped ahead makes the holder
// give up early. Contenders compare Mono alone, where the same events make them wait longer.
func (r Reading) Elapsed(since Reading) time.Duration {
	return max(r.Mono-since.Mono, r.Boot-since.Boot, r.Wall-since.Wall)
}

// Validity is the right a confirmed write gives its holder. Invariant: StopAfter <= ValidFor < TTL.
type Validity struct {
	Sent      Reading       // taken before the write was sent
	StopAfter time.Duration // new work may start until Sent + StopAfter
	ValidFor  time.Duration // running work may finish until Sent + ValidFor
}

// MayStart reports whether guarded work may start.
func (v Validity) MayStart(now Reading) bool { return now.Elapsed(v.Sent) < v.StopAfter }

// Remaining is the time until nothing may be finished any more; negative afterwards.
func (v Validity) Remaining(now Reading) time.Duration { return v.ValidFor - now.Elapsed(v.Sent) }
