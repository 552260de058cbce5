package core

import (
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

type (
	// Record is that of stores.
	Record = leasestore.Record
	// Version is that of stores.
	Version = leasestore.Version
	// Token is that of stores.
	Token = leasestore.Token
)

// blank reports whether a record names no holder and only keeps the token.
func blank(r Record) bool { return r.Nonce == "" }

// Blank is a record that names no holder. Without a Version it carries no information.
type Blank struct {
	Version Version
	Token   Token
}

// Event is an input of a machine.
type Event interface{ event() }

// Inputs. Every ID of Acquire and Release gets exactly one Answer.
type (
	// Acquire asks for the lease: one attempt, or with Wait until it is held. From is the record
	// that the last holder left, if it is known: the machine then claims without reading first.
	Acquire struct {
		ID   uint64
		Wait bool
		From Blank
	}
	// Cancel withdraws an Acquire. The answer is the outcome of its last attempt, unless it was
	// already answered.
	Cancel struct{ ID uint64 }
	// Release reports that the work of a tenure has stopped, and gives the lease up.
	Release struct {
		ID    uint64
		Token Token
	}
	// Abandon ends a tenure whose work cannot be stopped: it may run as long as the tenure is
	// valid, or until a Release.
	Abandon struct{ Token Token }
	// Close ends the tenure and rejects all later requests.
	Close struct{}
	// Loaded is the answer to Load. If Err is set, nothing was learnt.
	Loaded struct {
		Op      uint64
		Record  Record
		Version Version
		Err     error
	}
	// Swapped is the answer to Swap.
	Swapped struct {
		Op      uint64
		Status  Status
		Version Version // new one, if Written
		Token   Token   // of the record, if the store has assigned another token
		Err     error
	}
	// Changed is a hint from a watcher. The first one says that no later change will be missed.
	Changed struct{ Record Record }
	// Unwatched reports that the watcher has stopped; it may begin again.
	Unwatched struct{}
	// SessionLoaded is the answer to LoadSession.
	SessionLoaded struct {
		Op      uint64
		Record  Record
		Version Version
		Err     error
	}
	// SessionEnded is the answer to EndSession.
	SessionEnded struct {
		Op      uint64
		Status  Status
		Version Version // of the blank record, if Written
		Err     error
	}
	// Backed reports that the machine's own session record is held, or renewed.
	Backed struct {
		Token    Token
		Validity Validity
	}
	// Unbacked reports that the tenure of the own session record has ended.
	Unbacked struct {
		Token Token
		Why   Cause
		Err   error
	}
	// Unbackable reports that the own session record could not be written, and why. The keeper
	// tries again.
	Unbackable struct{ Err error }
	// Gone reports that no session believes that tenure of the own session record any more.
	Gone struct {
		Token   Token
		Outcome Outcome // Done or Doubt
	}
	// Enqueued is the answer to Enqueue: the places ahead of the written one, in order. If Err is
	// set, nothing was learnt.
	Enqueued struct {
		Op    uint64
		Ahead []Place
		Err   error
	}
	// Left is the answer to Leave.
	Left struct {
		Op  uint64
		Err error
	}
	// Look starts to follow the record although no caller wants the lease, or stops it.
	Look struct{ On bool }
	// Tick only lets time pass.
	Tick struct{}
)

func (Acquire) event()       {}
func (Cancel) event()        {}
func (Release) event()       {}
func (Abandon) event()       {}
func (Close) event()         {}
func (Loaded) event()        {}
func (Swapped) event()       {}
func (Changed) event()       {}
func (Unwatched) event()     {}
func (SessionLoaded) event() {}
func (SessionEnded) event()  {}
func (Backed) event()        {}
func (Unbacked) event()      {}
func (Unbackable) event()    {}
func (Gone) event()          {}
func (Enqueued) event()      {}
func (Left) event()          {}
func (Look) event()          {}
func (Tick) event()          {}

// Status is what is known about a conditional write.
type Status uint8

// Unknown is the zero value: without an answer nothing is known.
const (
	Unknown    Status = iota
	Written           // our write is the record now
	Conflicted        // certainly not written, because the version was another
	Refused           // certainly not written
)

// Effect is an output of a machine.
type Effect interface{ effect() }

// Outputs.
type (
	// Load asks for the record. A patient operation has twice the time of others.
	Load struct {
		Op      uint64
		Patient bool
	}
	// Swap asks for a conditional write.
	Swap struct {
		Op      uint64
		Old     Version
		Next    Record
		Patient bool // as in Load
	}
	// Begin starts a tenure; the Answers with its token follow. Previous is the token of the tenure
	// before.
	Begin struct {
		Token    Token
		Previous Token
		Validity Validity
	}
	// Extend moves the deadline of a tenure.
	Extend struct {
		Token    Token
		Validity Validity
	}
	// Warn reports, once per episode, that renewals are failing.
	Warn struct {
		Token     Token
		Remaining time.Duration
	}
	// End reports, once per tenure, that it is over.
	End struct {
		Token  Token
		Why    Cause
		Holder Record // the new holder
		Err    error  // last error of the store
	}
	// Drained reports that the work of an ended tenure has no time left. This is final: otherwise a
	// wall clock that jumps back after it had jumped ahead would show time left that has already
	// been given away.
	Drained struct{ Token Token }
	// Answer completes an Acquire or a Release.
	Answer struct {
		ID      uint64
		Outcome Outcome
		Token   Token         // of the tenure, if Acquired
		Holder  Record        // the holder
		Left    time.Duration // time until the holder's record may be taken, if it is not renewed
		Blank   Blank         // the record that a release has written; only if Done, and not always
		Err     error
	}
	// LoadSession asks for the record of another session.
	LoadSession struct {
		Op      uint64
		Nonce   string
		Patient bool // as in Load
	}
	// EndSession asks for a conditional write that ends a tenure of another session.
	EndSession struct {
		Op    uint64
		Nonce string
		Old   Version
		Next  Record
	}
	// Enqueue asks to write a place in the queue of the lease: at its end, or at the present
	// position of the nonce.
	Enqueue struct {
		Op    uint64
		Place Place
	}
	// Leave asks to remove places from the queue, unless they have been written again with a larger
	// beat.
	Leave struct {
		Op     uint64
		Places []Place
	}
	// Failing reports why a Keeper has no tenure yet.
	Failing struct{ Err error }
	// Over reports that no session believes a tenure of a Keeper any more.
	Over struct {
		Token   Token
		Outcome Outcome // Done or Doubt
	}
	// Follow starts an Observer of another session, or reports that it is not needed here any more.
	Follow struct {
		Nonce string
		On    bool
	}
	// Watch starts or stops hints.
	Watch struct{ On bool }
)

func (Load) effect()        {}
func (Swap) effect()        {}
func (Begin) effect()       {}
func (Extend) effect()      {}
func (Warn) effect()        {}
func (End) effect()         {}
func (Drained) effect()     {}
func (Answer) effect()      {}
func (Watch) effect()       {}
func (Follow) effect()      {}
func (LoadSession) effect() {}
func (EndSession) effect()  {}
func (Enqueue) effect()     {}
func (Leave) effect()       {}
func (Failing) effect()     {}
func (Over) effect()        {}

// Cause is the cause of the end of a tenure.
type Cause uint8

// Causes; all but Released are losses.
const (
	Released Cause = iota
	Expired
	TakenOver
	RecordDeleted
	Closed
)

func (c Cause) String() string {
	return [...]string{"released", "expired", "taken over", "record deleted", "closed"}[c]
}

// Outcome is the outcome of a request.
type Outcome uint8

// Outcomes of Acquire: Acquired, Taken, Doubt, Shut. Of Release: Done, StillHeld, Doubt, Shut.
const (
	Acquired  Outcome = iota + 1
	Taken             // certainly held by another
	Doubt             // unknown
	Shut              // closed
	Done              // certainly not held any more
	StillHeld         // certainly not released; the release is tried again
)

func (o Outcome) String() string {
	return [...]string{"none", "acquired", "taken", "doubt", "shut", "done", "still held"}[o]
}
