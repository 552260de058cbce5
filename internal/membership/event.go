package membership

import "time"

// Listed is a member as a provider lists it.
type listed struct {
	ID, Address string
	Roles       []string // sorted
}

// Events of the core.
type (
	// topology is all that the provider lists now.
	topology struct{ members []listed }
	// wake lets time pass.
	wake struct{}
	// received is a hello of another member, opened and decoded.
	received struct {
		member string // sender's id
		from   uint64 // its incarnation
		to     uint64 // the incarnation it is for, 0: any
		hello  hello
	}
	// named are addresses that another member lists, sent to members with which it does not agree.
	named struct {
		member    string
		from, to  uint64
		addresses []string
	}
	// leave says that this member is about to leave in order.
	leave struct{}
	// arbiter says whether the arbiter lease is held in this member's fragment.
	arbiter struct{ here bool }
)

// Effects of the core.
type (
	// send asks to send a hello.
	send struct {
		address string
		to      uint64 // incarnation of the receiver, 0 while not known
		hello   hello
	}
	// publish hands out a new view.
	publish struct{ view *View }
	// dropped counts a hello that was not taken, and why.
	dropped struct{ why reason }
	// name asks to send addresses that we list.
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
	// divided names the lost members, and those with which we disagree for longer than patience.
	divided struct {
		lost   []string
		others []Member
		since  time.Time // the first of them
	}
)

// notice is something that operators want to know of a split.
type notice int

const (
	evidence    notice = iota // a running member and we do not both list each other
	split                     // that has lasted longer than patience
	agreement                 // now we do, after a split
	permitGiven               // it may give way to us
	permitTaken               // we give way to it
	goodbye                   // it leaves in order
	numberOfNotices
)

type (
	event  any // topology, wake, received, named, leave, arbiter
	effect any // send, publish, dropped, name, asked, noted, divided
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
	droppedYou bool   // the sender once listed the member this is for, and never will again
	yield      bool   // asks for a permit to give way
	permit     uint64 // sequence of the hello that asked: its sender may give way
	declined   uint64 // sequence of the hello that carried a permit: its sender does not give way
	leaving    bool   // the sender leaves in order
}
