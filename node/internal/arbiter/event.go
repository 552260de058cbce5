package arbiter

import (
	"fmt"
)

// maxMembers bounds how many members a peer can make this one remember.
const maxMembers = 10_000

// Events.
type (
	// View is the view of this member. Members lists all members, including this one, in any order.
	// Removed ends the machine.
	View struct {
		Self, Oldest string
		Members      []string
		Removed      bool
	}
	// Tried is the result of a Try.
	Tried struct {
		Op     uint64
		Result Result
	}
	// Probed is the result of a Probe: Held means that nobody holds the lease of the majority.
	Probed struct {
		Op     uint64
		Result Result
	}
	// Compared is the result of a Compare: Taken means that the session holds the lease of the
	// majority in the store of this member, Held that it does not.
	Compared struct {
		Op     uint64
		Result Result
	}
	// Lost reports that the lease acquired in attempt Op is lost.
	Lost struct{ Op uint64 }
	// Heard is a message from another member.
	Heard struct {
		From    string
		Verdict Verdict
	}
	// Leave ends the machine: the member leaves in order.
	Leave struct{}
	// Wake advances the time.
	Wake struct{}
)

// Effects.
type (
	// Gate opens or shuts the gate. Why is for human readers.
	Gate struct {
		Open bool
		Why  string
	}
	// Tell reports whether members are missing and this side is known to host.
	Tell struct{ Here bool }
	// Try requests one attempt to acquire a lease.
	Try struct {
		Op    uint64
		Lease Name
	}
	// Probe requests to find out whether a living member holds the lease of the majority.
	Probe struct{ Op uint64 }
	// Compare requests to find out whether a session of another member holds the lease of the
	// majority in the store of this one.
	Compare struct {
		Op      uint64
		Session string
	}
	// Foreign reports that this member does not use the lease store of its leader. It cannot go on.
	Foreign struct{ Leader string }
	// ForeignPeer reports that another member does not use the lease store of its leader.
	ForeignPeer struct{ Member string }
	// Release releases the lease acquired in attempt Op.
	Release struct{ Op uint64 }
	// Send sends a verdict to other members.
	Send struct {
		To      []string
		Verdict Verdict
	}
)

// Name is one of the two leases.
type Name uint8

// Names of the leases.
const (
	Majority Name = iota // held by a side with a majority
	Rest                 // elects one of several sides without a majority
)

func (n Name) String() string { return [...]string{"majority", "rest"}[n] }

// Result is the result of an attempt.
type Result uint8

// Results.
const (
	Unknown Result = iota // the store did not answer
	Held                  // acquired by this member
	Taken                 // held by another member
)

// Verdict is a leader's decision, sent to the members of its view.
type Verdict struct {
	Kind Kind
	// Members is how many members the leader counts, present and missing; 0 means that it does not
	// know.
	Members int
	// Session is the session through which the leader holds the lease of the majority; empty: it
	// does not hold it.
	Session string
}

// maxSession is the maximum length of the ID of a session.
const maxSession = 64

func (v Verdict) String() string { return fmt.Sprintf("%v of %d", v.Kind, v.Members) }

// Kind is the kind of a verdict. The numbers are part of the wire format.
type Kind uint8

// Kinds.
const (
	Undecided  Kind = iota + 1 // this side has no majority, and does not host
	Pending                    // this side goes on hosting, and no lease says so
	Whole                      // no member is missing
	Ours                       // members are missing, and a lease says that this side hosts
	Elsewhere                  // another side hosts
	Leaving                    // the sender leaves in order; not a verdict
	Yielding                   // this side has a majority, but another one hosts
	OtherStore                 // the sender uses another lease store, and ends; not a verdict
	kinds
)

// Valid reports whether a peer may send v.
func (v Verdict) Valid() bool {
	return v.Kind > 0 && v.Kind < kinds && v.Members >= 0 && v.Members <= maxMembers &&
		len(v.Session) <= maxSession
}

func (k Kind) open() bool { return k == Pending || k == Whole || k == Ours }

func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{"", "undecided", "pending", "whole", "ours", "elsewhere", "leaving",
		"yielding", "other store"}[k]
}
