package core

import "time"

// Event is an input of a Machine or a Route.
type Event interface{ event() }

// Inputs of both.
type (
	// View says who may host, oldest first, and who we are.
	View struct {
		Self    Member
		Hosts   []Member
		Removed bool // we have been expelled; final
	}
	// Leaving says that this incarnation of a member will not host any more.
	Leaving struct{ Member Member }
	// Wake lets time pass.
	Wake struct{}
)

// Inputs of a Machine. Each names the attempt, the tenure or the run that it speaks of, so that one that
// is late is recognised.
type (
	// Held says that the attempt was granted.
	Held struct{ Attempt, Token uint64 }
	// Failed says that the attempt has ended without a grant. Final: no other one can succeed. Taken: the
	// store has answered, and another session holds the lease.
	Failed struct {
		Attempt      uint64
		Final, Taken bool
	}
	// Lost says that the tenure is over. Silent: because the store did not answer.
	Lost struct {
		Token  uint64
		Silent bool
	}
	// Gone says that the instance has terminated, whatever the reason.
	Gone struct{ Run uint64 }
	// Broken says that the instance has panicked. It keeps its mailbox, and handles nothing until a Restart.
	Broken struct{ Run uint64 }
	// Released says that the release has ended. Certain: the lease is free.
	Released struct {
		Token   uint64
		Certain bool
	}
	// Free is the word of a former host that the lease is free.
	Free struct{}
	// Close asks to hand over and never to host again.
	Close struct{}
	// Gate says whether this member may host at all.
	Gate struct{ Open bool }
	// Abstain is the word of another member that it does not host for so long; 0: that it may again.
	// Failing: that for so long instances fail there, but it hosts, since nobody else may. Of two words of
	// one member the one with the larger Seq counts.
	Abstain struct {
		From    Member
		Seq     uint64
		For     time.Duration
		Failing bool
	}
	// Probed answers a Probe. Taken: the lease is held by another session.
	Probed struct {
		Probe          uint64
		Reached, Taken bool
	}
)

// Inputs of a Route.
type (
	// Host says that the instance is at From.
	Host struct {
		From         Member
		Round, Token uint64
	}
	// Paused says that the instance of From takes no messages any more. Lost: nor does it handle those
	// that it has.
	Paused struct {
		From  Member
		Token uint64
		Lost  bool
	}
)

func (View) event()     {}
func (Leaving) event()  {}
func (Wake) event()     {}
func (Held) event()     {}
func (Failed) event()   {}
func (Lost) event()     {}
func (Gone) event()     {}
func (Broken) event()   {}
func (Released) event() {}
func (Free) event()     {}
func (Close) event()    {}
func (Gate) event()     {}
func (Abstain) event()  {}
func (Probed) event()   {}
func (Host) event()     {}
func (Paused) event()   {}

// Effect is an output, to be carried out in order.
type Effect interface{ effect() }

// Outputs of a Machine.
type (
	// Acquire begins an attempt that waits for the lease, for a bounded time. It ends with one Held or
	// Failed. No two attempts overlap.
	Acquire struct{ Attempt uint64 }
	// Cancel asks the attempt to end soon.
	Cancel struct{ Attempt uint64 }
	// Start makes the instance. If the tenure is over by now, do not, and answer with Lost and Gone.
	Start struct{ Run, Token uint64 }
	// Restart makes an instance that has panicked anew, in the same mailbox.
	Restart struct{ Run uint64 }
	// Pause tells the proxies that the instance takes no more messages. Lost: see Paused.
	Pause struct {
		Token uint64
		Lost  bool
	}
	// Stop asks the instance to end when it has done its work; answered by Gone.
	Stop struct{ Run uint64 }
	// Kill stops the instance after the message it is handling; answered by Gone.
	Kill struct{ Run uint64 }
	// Release gives the tenure up; answered by Released.
	Release struct{ Token uint64 }
	// TellFree tells the next host that it need not wait.
	TellFree struct {
		To    Member
		Token uint64
	}
	// TellLeaving tells everybody that we host no more.
	TellLeaving struct{}
	// TellAbstain tells the managers what Abstain says.
	TellAbstain struct {
		Seq     uint64
		For     time.Duration
		Failing bool
	}
	// Probe looks at the lease; answered by Probed. No two overlap.
	Probe struct{ Probe uint64 }
	// Follow says whether to observe the lease without wanting it.
	Follow struct{ On bool }
	// Closed says that what Close asked for is done.
	Closed struct{}
)

// Outputs of a Route.
type (
	// Ask asks a member for the host.
	Ask struct {
		To    Member
		Round uint64
	}
	// Found says that the instance is there: messages flow.
	Found struct {
		Host  Member
		Token uint64
	}
	// Hidden says that it is not known where the instance is: messages wait.
	Hidden struct{}
	// Orphaned says that what was sent under tenures up to Token, and has no answer yet, gets none.
	Orphaned struct{ Token uint64 }
)

func (Acquire) effect()     {}
func (Cancel) effect()      {}
func (Start) effect()       {}
func (Restart) effect()     {}
func (Pause) effect()       {}
func (Stop) effect()        {}
func (Kill) effect()        {}
func (Release) effect()     {}
func (TellFree) effect()    {}
func (TellLeaving) effect() {}
func (TellAbstain) effect() {}
func (Probe) effect()       {}
func (Follow) effect()      {}
func (Closed) effect()      {}
func (Ask) effect()         {}
func (Found) effect()       {}
func (Hidden) effect()      {}
func (Orphaned) effect()    {}

// Config of a Machine.
type Config struct {
	// HandOver bounds a planned stop; then the instance is killed.
	HandOver time.Duration
	// Hurry bounds a stop that has nobody to hand over to, or no time: then the instance is killed.
	Hurry time.Duration
	// BackOff is the wait before an instance that has failed is made again, doubled each time up to
	// MaxBackOff. One that has run for MaxBackOff starts over. To fail is to panic, or to stop unasked.
	BackOff, MaxBackOff time.Duration
	// Tries is how many failures in a row make this member abstain, if another one may host. At least 1.
	Tries int
	// MinMembers is how many hosts a member must have seen at once before it hosts. 0: it waits for
	// Settle instead, from its first view on.
	MinMembers int
	Settle     time.Duration
	// Abstain is how long the word holds that we abstain, repeated each Repeat.
	Abstain, Repeat time.Duration
	// Return is how long the store must have answered before a member that abstained takes the instance
	// back from another one, doubled with each abstention up to MaxReturn. After MaxReturn without one
	// it starts over.
	Return, MaxReturn time.Duration
}
