package core

import "time"

// Event is an input of a Machine or a Route.
type Event interface{ event() }

// Inputs of both.
type (
	// View lists the members that may host, oldest first, and ourselves. Preferred lists the same
	// members in the order in which this member wants them to host; nil if age alone decides.
	View struct {
		Self             Member
		Hosts, Preferred []Member
		Removed          bool // we have been removed; final
	}
	// Leaving reports that this incarnation of a member will not host any more.
	Leaving struct{ Member Member }
	// Wake only lets time pass.
	Wake struct{}
)

// Inputs of a Machine. Each names its attempt, tenure or run, so that a late one is recognized.
type (
	// Held reports that the attempt was granted.
	Held struct{ Attempt, Token uint64 }
	// Failed reports that the attempt has ended without a grant. Final: no other attempt can
	// succeed. Taken: the store has answered, and another session holds the lease.
	Failed struct {
		Attempt      uint64
		Final, Taken bool
	}
	// Lost reports that the tenure is over. Silent: because the store did not answer.
	Lost struct {
		Token  uint64
		Silent bool
	}
	// Gone reports that the instance has terminated, for any reason. Ran is how long it ran after
	// it had started, without the last message that it handled.
	Gone struct {
		Run uint64
		Ran time.Duration
	}
	// Broken reports that the instance has panicked. It keeps its mailbox, and handles no message
	// until a Restart. Ran is that of Gone.
	Broken Gone
	// Released reports that the release has ended. Certain: the lease is free.
	Released struct {
		Token   uint64
		Certain bool
	}
	// Free reports that a former host has released the lease.
	Free struct{}
	// Close asks to hand over and never to host again.
	Close struct{}
	// Gate reports whether this member may host at all.
	Gate struct{ Open bool }
	// Announcement is that of another member that it runs, and does not host for now; if For
	// is 0, that it may host. Two kinds do not decline. Failing: instances fail there, but it
	// hosts, since no other member may. Claims: it claims the instance, because it is the first by
	// its own preference. Of two announcements of one member the one with the larger Seq counts.
	// Token: the instance runs there under this tenure; 0: it does not. It is an input of both.
	Announcement struct {
		From            Member
		Seq             uint64
		For             time.Duration
		Failing, Claims bool
		Token           uint64
	}
	// Probed answers a Probe. Taken: the lease is held by another session, under this token.
	Probed struct {
		Probe          uint64
		Reached, Taken bool
		Token          uint64
	}
)

// Inputs of a Route.
type (
	// Host reports that the instance is at From.
	Host struct {
		From         Member
		Round, Token uint64
	}
	// Paused reports that the instance of From takes no messages any more. Lost: it does not handle
	// the messages that it has, either.
	Paused struct {
		From  Member
		Token uint64
		Lost  bool
	}
)

func (View) event()         {}
func (Leaving) event()      {}
func (Wake) event()         {}
func (Held) event()         {}
func (Failed) event()       {}
func (Lost) event()         {}
func (Gone) event()         {}
func (Broken) event()       {}
func (Released) event()     {}
func (Free) event()         {}
func (Close) event()        {}
func (Gate) event()         {}
func (Announcement) event() {}
func (Probed) event()       {}
func (Host) event()         {}
func (Paused) event()       {}

// Effect is an output, to be carried out in order.
type Effect interface{ effect() }

// Outputs of a Machine.
type (
	// Acquire starts an attempt that waits for the lease, for a bounded time. It ends with one Held
	// or Failed. Attempts never overlap.
	Acquire struct{ Attempt uint64 }
	// Cancel asks for an early end of the attempt.
	Cancel struct{ Attempt uint64 }
	// Start makes the instance. If the tenure is already over, the shell answers with Lost and Gone
	// instead.
	Start struct{ Run, Token uint64 }
	// Restart makes a new instance in place of one that has panicked, with the same mailbox.
	Restart struct{ Run uint64 }
	// Pause notifies the proxies that the instance takes no more messages. Lost: see Paused.
	Pause struct {
		Token uint64
		Lost  bool
	}
	// Stop asks the instance to stop when it has done its work; answered by Gone.
	Stop struct{ Run uint64 }
	// StopNow stops the instance after its present message; answered by Gone.
	StopNow struct{ Run uint64 }
	// Release gives the tenure up; answered by Released.
	Release struct{ Token uint64 }
	// TellFree notifies the next host that the lease is free.
	TellFree struct {
		To    Member
		Token uint64
	}
	// TellLeaving notifies all members that we will not host any more.
	TellLeaving struct{}
	// Announce sends an Announcement to the other managers, and to all proxies.
	Announce struct {
		Seq             uint64
		For             time.Duration
		Failing, Claims bool
		Token           uint64
	}
	// Probe reads the lease; answered by Probed. Probes never overlap.
	Probe struct{ Probe uint64 }
	// Follow starts or stops observing the lease without wanting it.
	Follow struct{ On bool }
	// Closed reports that Close is complete.
	Closed struct{}
)

// Outputs of a Route.
type (
	// Ask asks a member where the host is.
	Ask struct {
		To    Member
		Round uint64
	}
	// Found reports that the instance is there: messages flow.
	Found struct {
		Host  Member
		Token uint64
	}
	// Hidden reports that the place of the instance is unknown: messages wait.
	Hidden struct{}
	// Orphaned reports that messages sent under tenures up to Token will not be answered any more.
	Orphaned struct{ Token uint64 }
)

func (Acquire) effect()     {}
func (Cancel) effect()      {}
func (Start) effect()       {}
func (Restart) effect()     {}
func (Pause) effect()       {}
func (Stop) effect()        {}
func (StopNow) effect()     {}
func (Release) effect()     {}
func (TellFree) effect()    {}
func (TellLeaving) effect() {}
func (Announce) effect()    {}
func (Probe) effect()       {}
func (Follow) effect()      {}
func (Closed) effect()      {}
func (Ask) effect()         {}
func (Found) effect()       {}
func (Hidden) effect()      {}
func (Orphaned) effect()    {}

// Config is the configuration of a Machine.
type Config struct {
	// HandOver bounds a planned stop; after it the instance is stopped now.
	HandOver time.Duration
	// Hurry bounds a stop without a member to hand over to, or without time; after it the instance
	// is stopped now.
	Hurry time.Duration
	// BackOff is the wait before an instance that has failed is made again, doubled each time up to
	// MaxBackOff. The wait starts over after an instance has run for MaxBackOff. To fail is to
	// panic, or to stop without a request.
	BackOff, MaxBackOff time.Duration
	// Tries is the number of failures in a row after which this member declines, if another member
	// may host. At least 1.
	Tries int
	// MinMembers is the number of hosts that a member must have seen at the same time before it
	// hosts. 0: it waits for Settle instead, from its first view on.
	MinMembers int
	Settle     time.Duration
	// AnnouncedFor is how long an announcement is valid; it is repeated every Repeat.
	AnnouncedFor, Repeat time.Duration
	// Grace is how long a member that is elected by age waits for a claim of the member that it
	// prefers, before it acquires.
	Grace time.Duration
	// Doubt is how long the lease may be free before the next member tries although another one is
	// elected.
	Doubt time.Duration
	// Return is how long the store must have answered before a member that declined takes the
	// instance back from another one, doubled each time that it declines, up to MaxReturn. It
	// starts over when the member has not declined for MaxReturn.
	Return, MaxReturn time.Duration
}
