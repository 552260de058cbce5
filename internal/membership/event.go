package membership

import "time"

// listed is a member as listed by a provider.
type listed struct {
	ID, Address string
	AppVersion  string
	Roles       []string // sorted
}

// Events of the core.
type (
	// topology contains all members that the provider lists now.
	topology struct{ members []listed }
	// wake lets time pass.
	wake struct{}
	// received is a hello of another member, opened and decoded.
	received struct {
		member string // sender's id
		from   uint64 // its incarnation
		to     uint64 // the incarnation it is for, 0 for any
		hello  hello
	}
	// named contains addresses that another member lists. It is exchanged by members in conflict.
	named struct {
		member    string
		from, to  uint64
		addresses []string
	}
	// leave means that this member is about to leave gracefully.
	leave struct{}
	// arbiter reports whether the arbiter lease is held in this member's fragment.
	arbiter struct{ here bool }
)

// Effects of the core.
type (
	// send sends a hello.
	send struct {
		address string
		to      uint64 // incarnation of the receiver, 0 if unknown
		hello   hello
	}
	// publish publishes a new view.
	publish struct{ view *View }
	// dropped counts a dropped hello by its reason.
	dropped struct{ why reason }
	// name sends addresses that we list.
	name struct {
		address   string
		to        uint64
		addresses []string
	}
	// asked counts a hello to a lost address.
	asked struct{}
	// noted is for counters and the log.
	noted struct {
		what  notice
		other Member
	}
	// divided contains the lost members, and those in conflict with us for longer than the
	// patience.
	divided struct {
		lost   []string
		others []Member
		since  time.Time // the first of them
	}
	// replaced contains the address of a member that did not leave gracefully, at which another one
	// is listed now.
	replaced struct{ address string }
)

// notice is an event of a split that concerns operators.
type notice int

const (
	inConflict  notice = iota // a running member and we do not both list each other
	split                     // evidence has lasted longer than the patience
	agreement                 // both list each other again, after a split
	permitGiven               // it may step down for us
	permitTaken               // we step down for it
	goodbye                   // it leaves gracefully
	numberOfNotices
)

type (
	event  any // topology, wake, received, named, leave, arbiter
	effect any // send, publish, dropped, name, asked, noted, divided, replaced
)

// hello is the message of proto/membership.proto.
type hello struct {
	address  string
	sequence uint64
	stamp    uint64
	maxStamp uint64
	viewHash uint64
	listsYou bool
	answer   bool

	claim             // of the sender
	droppedYou bool   // the sender once listed the receiver, and never will again
	yield      bool   // requests a permit to step down
	permit     uint64 // sequence of the request that is granted: its sender may step down
	declined   uint64 // sequence of the hello with the permit: its sender does not step down
	leaving    bool   // the sender leaves gracefully
	pledge     string // hash of the proof that the sender has for the receiver; to those it lists
	proof      string // shows that the sender gave the pledge; if one does not list the other
}
