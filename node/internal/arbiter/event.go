package arbiter

import (
	"fmt"
)

// maxMembers bounds what a peer can make us remember.
const maxMembers = 10_000

// Events.
type (
	// View is the view of this member. Members are all, this one included, in any order. Removed ends the machine.
	View struct {
		Self, Oldest string
		Members      []string
		Removed      bool
	}
	// Tried answers Try.
	Tried struct {
		Op     uint64
		Result Result
	}
	// Lost tells that the lease held since that attempt is not held any more.
	Lost struct{ Op uint64 }
	// Heard is a message of another member.
	Heard struct {
		From    string
		Verdict Verdict
	}
	// Leave ends the machine: the member leaves in order.
	Leave struct{}
	// Wake lets time pass.
	Wake struct{}
)

// Effects.
type (
	// Gate opens or shuts the gate. Why is for people.
	Gate struct {
		Open bool
		Why  string
	}
	// Tell says whether the lease is known to be held on this side.
	Tell struct{ Here bool }
	// Try asks for one attempt to acquire the lease.
	Try struct{ Op uint64 }
	// Release gives up the lease held since that attempt.
	Release struct{ Op uint64 }
	// Send tells other members.
	Send struct {
		To      []string
		Verdict Verdict
	}
)

// Result of an attempt.
type Result uint8

// Results.
const (
	Unknown Result = iota // the store has not said
	Held                  // by this member
	Taken                 // certainly by another side
)

// Verdict is what a leader knows, told to the members of its view.
type Verdict struct {
	Kind Kind
	// Members is how many members the leader remembers; 0: it has just started.
	Members int
}

func (v Verdict) String() string { return fmt.Sprintf("%v of %d", v.Kind, v.Members) }

// Kind of a verdict. The numbers are on the wire.
type Kind uint8

// Kinds.
const (
	Undecided Kind = iota + 1 // not known whose it is
	Pending                   // a majority is trying, and its gate stays open until the answer
	Whole                     // nobody is missing
	Ours                      // the leader holds the lease
	Elsewhere                 // another side holds it
	Leaving                   // the sender leaves in order; no verdict
	kinds
)

// Valid reports whether a peer may have sent v.
func (v Verdict) Valid() bool {
	return v.Kind > 0 && v.Kind < kinds && v.Members >= 0 && v.Members <= maxMembers
}

func (k Kind) open() bool { return k == Pending || k == Whole || k == Ours }

func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{"", "undecided", "pending", "whole", "ours", "elsewhere", "leaving"}[k]
}
