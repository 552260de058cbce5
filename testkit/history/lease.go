package history

import "fmt"

// LeaseKind is the kind of an operation on a lease, or on the target that it fences.
type LeaseKind uint8

// The operations of a lease and its target.
const (
	// Acquire is one attempt by Holder: Granted with a Token, Refused (held by another), or
	// unknown.
	Acquire LeaseKind = iota
	// Release gives up Token. Granted means that the tenure certainly no longer holds the lease,
	// Refused that it certainly still does.
	Release
	// Expire is not a request. The test records its begin and end when the validity of Token has
	// passed on the holder's own clock. From then on, and not before, others may be granted the
	// lease.
	Expire
	// GuardedWrite writes Value under Token to the target, which grants it or refuses it as stale.
	GuardedWrite
	// GuardedRead reads the target.
	GuardedRead
)

// LeaseOp is an operation on one lease.
type LeaseOp struct {
	Lease  string
	Kind   LeaseKind
	Holder string // Acquire: the contender; distinct for each session
	Token  uint64 // Release, Expire, GuardedWrite
	Value  string // GuardedWrite
}

func (o LeaseOp) String() string {
	switch o.Kind {
	case Acquire:
		return fmt.Sprintf("%s acquires %s", o.Holder, o.Lease)
	case Release:
		return fmt.Sprintf("release %s, token %d", o.Lease, o.Token)
	case Expire:
		return fmt.Sprintf("%s, token %d is not valid any more", o.Lease, o.Token)
	case GuardedWrite:
		return fmt.Sprintf("write %s under %s, token %d", o.Value, o.Lease, o.Token)
	}
	return "read what " + o.Lease + " guards"
}

// LeaseResult is the answer.
type LeaseResult struct {
	Granted bool
	Token   uint64 // Acquire, if granted
	Value   string // GuardedRead
}

// LeaseState is the true state of a lease, which no client sees: its holder, and what the target
// has seen.
type LeaseState struct {
	Holder string // "" if there is none
	Token  uint64 // of the holder; 0 if no client knows it
	Ended  bool   // the holder's tenure may be over at any time: expired, or being given up
	High   uint64 // largest token granted
	Value  string // in the target
	Fence  uint64 // token it was written under
}

// Lease is the model of leases with mutual exclusion whose tokens grow with every tenure. Each
// lease has a target that rejects tokens below the largest it has seen. A tenure ends with its
// release or after its expiry. A contender without an answer may hold the lease until it is
// released.
func Lease() Model[LeaseState, LeaseOp, LeaseResult] {
	return Model[LeaseState, LeaseOp, LeaseResult]{
		Part: func(in LeaseOp) string { return in.Lease },
		Step: stepLease,
	}
}

func stepLease(s LeaseState, in LeaseOp, out Outcome[LeaseResult]) []LeaseState {
	switch in.Kind {
	case Acquire:
		return s.acquire(in, out)
	case Release:
		return s.release(in, out)
	case Expire:
		ended := s
		ended.Ended = ended.Ended || s.Token == in.Token
		return []LeaseState{ended}
	case GuardedWrite:
		return s.write(in, out)
	}
	return when(!out.Known || out.Value.Value == s.Value, s)
}

func (s LeaseState) free() bool { return s.Holder == "" || s.Ended }

func (s LeaseState) acquire(in LeaseOp, out Outcome[LeaseResult]) []LeaseState {
	next := s
	next.Holder, next.Token, next.Ended = in.Holder, out.Value.Token, false
	switch {
	case !out.Known && s.free(): // it may hold the lease now, until it releases it
		next.Token, next.Ended = 0, true
		return []LeaseState{s, next}
	case !out.Known:
		return []LeaseState{s}
	case !out.Value.Granted:
		return when(s.Holder != "" && s.Holder != in.Holder, s)
	case s.Holder == in.Holder && s.Token == out.Value.Token: // it already holds the lease
		return []LeaseState{s}
	}
	next.High = out.Value.Token
	return when(s.free() && out.Value.Token > s.High, next)
}

func (s LeaseState) release(in LeaseOp, out Outcome[LeaseResult]) []LeaseState {
	if s.Token != in.Token { // already over
		return when(!out.Known || out.Value.Granted, s)
	}
	blank, ended := s, s
	blank.Holder, blank.Token, blank.Ended = "", 0, false
	ended.Ended = true // the session retries it without the caller's knowledge
	switch {
	case !out.Known:
		return []LeaseState{s, ended}
	case out.Value.Granted:
		return []LeaseState{blank}
	}
	return []LeaseState{ended}
}

func (s LeaseState) write(in LeaseOp, out Outcome[LeaseResult]) []LeaseState {
	written := s
	written.Value, written.Fence = in.Value, in.Token
	fresh := in.Token >= s.Fence && in.Token <= s.High
	switch {
	case !out.Known && fresh:
		return []LeaseState{s, written}
	case !out.Known:
		return []LeaseState{s}
	case out.Value.Granted:
		return when(fresh, written)
	}
	return when(in.Token < s.Fence, s)
}
