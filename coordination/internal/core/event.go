package core

import "time"

// Record is what the store keeps for a name. Blank, with an empty Nonce, it names no holder and only
// keeps the token.
type Record struct {
	Owner, Nonce string
	Token        uint64
	Attempt      uint64
	TTL          time.Duration
	Session      uint64 // token of the session record that keeps it alive; 0: it is renewed itself
	Forever      bool   // it never expires
}

func (r Record) blank() bool { return r.Nonce == "" }

// Version is the store's mark of a state; empty when there is no record.
type Version string

// Blank is a record that names no holder; without a Version it says nothing.
type Blank struct {
	Version Version
	Token   uint64
}

// Event is an input of a machine.
type Event interface{ event() }

// Inputs. Every ID of Acquire and Release gets exactly one Answer.
type (
	// Acquire asks for the lease: one attempt, or with Wait until it is held.
	// From is how the last holder left the record, if that is known: it is then claimed without a look.
	Acquire struct {
		ID   uint64
		Wait bool
		From Blank
	}
	// Cancel withdraws an Acquire. It is answered Cancelled unless the answer is out already.
	Cancel struct{ ID uint64 }
	// Release says that the work of a tenure has ended and gives the lease up.
	Release struct{ ID, Token uint64 }
	// Close ends the tenure and refuses all later requests.
	Close struct{}
	// Loaded is the answer to Load. Err set: nothing was learnt.
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
		Token   uint64  // of the record, if the store has given it another one than it was asked for
		Err     error
	}
	// Changed is a hint of a watcher.
	Changed struct{ Record Record }
	// SessionLoaded is the answer to LoadSession.
	SessionLoaded struct {
		Op      uint64
		Record  Record
		Version Version
		Err     error
	}
	// Backed tells that the record of the own session is held, or renewed.
	Backed struct {
		Token    uint64
		Validity Validity
	}
	// Unbacked tells that its tenure has ended.
	Unbacked struct {
		Token uint64
		Why   Cause
		Err   error
	}
	// Unbackable tells that the own session's record could not be written, and why. That is tried again.
	Unbackable struct{ Err error }
	// Gone tells that nobody believes that tenure any more.
	Gone struct {
		Token   uint64
		Outcome Outcome // Done or Doubt
	}
	// Enqueued is the answer to Enqueue: who stands before the place, in order. Err set: nothing was learnt.
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
	// Look asks to follow the record although nobody wants the lease, or no longer.
	Look struct{ On bool }
	// Tick lets time pass.
	Tick struct{}
)

func (Acquire) event()       {}
func (Cancel) event()        {}
func (Release) event()       {}
func (Close) event()         {}
func (Loaded) event()        {}
func (Swapped) event()       {}
func (Changed) event()       {}
func (SessionLoaded) event() {}
func (Backed) event()        {}
func (Unbacked) event()      {}
func (Unbackable) event()    {}
func (Gone) event()          {}
func (Enqueued) event()      {}
func (Left) event()          {}
func (Look) event()          {}
func (Tick) event()          {}

// Status is what is known of a conditional write.
type Status uint8

// Unknown is the zero value: without an answer nothing is known.
const (
	Unknown    Status = iota
	Written           // it is the record now
	Conflicted        // certainly not written, the version was another
	Refused           // certainly not written
)

// Effect is an output of a machine.
type Effect interface{ effect() }

// Outputs.
type (
	// Load asks for the record.
	Load struct{ Op uint64 }
	// Swap asks for a conditional write.
	Swap struct {
		Op   uint64
		Old  Version
		Next Record
	}
	// Begin starts a tenure; the Answers with its token follow. Previous is the token of the one before.
	Begin struct {
		Token    uint64
		Previous uint64
		Validity Validity
	}
	// Extend moves the deadline of a tenure.
	Extend struct {
		Token    uint64
		Validity Validity
	}
	// Warn tells once per episode that renewals are failing.
	Warn struct {
		Token     uint64
		Remaining time.Duration
	}
	// End tells once per tenure that it is over.
	End struct {
		Token  uint64
		Why    Cause
		Holder Record // who took over
		Err    error  // last error of the store
	}
	// Drained tells that the work of an ended tenure has no time left. It stays so: without it, a wall
	// clock that jumps back after it had jumped ahead would show time that has been given away.
	Drained struct{ Token uint64 }
	// Answer completes an Acquire or a Release.
	Answer struct {
		ID      uint64
		Outcome Outcome
		Token   uint64        // of the tenure, if Acquired
		Holder  Record        // who holds it
		Left    time.Duration // time until the holder's record may be taken, if it is not renewed
		Blank   Blank         // what a release that is Done has written, if it has
		Err     error
	}
	// LoadSession asks for the record of another session.
	LoadSession struct {
		Op    uint64
		Nonce string
	}
	// Bury asks for a conditional write on the record of another session that is certainly over. Nobody waits
	// for its outcome.
	Bury struct {
		Nonce string
		Old   Version
		Next  Record
	}
	// Enqueue asks to write a place in the queue of the lease: at its end, or where the nonce stands already.
	Enqueue struct {
		Op    uint64
		Place Place
	}
	// Leave asks to take places out of the queue, unless they have been written again with a larger beat.
	Leave struct {
		Op     uint64
		Places []Place
	}
	// Failing tells, of a Keeper without a tenure, why it has none yet.
	Failing struct{ Err error }
	// Over tells, of a Keeper, that nobody believes a tenure any more.
	Over struct {
		Token   uint64
		Outcome Outcome // Done or Doubt
	}
	// Follow asks for an Observer of another session, or says that it is not needed here any more.
	Follow struct {
		Nonce string
		On    bool
	}
	// Watch asks for hints, or no more of them.
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
func (Bury) effect()        {}
func (Enqueue) effect()     {}
func (Leave) effect()       {}
func (Failing) effect()     {}
func (Over) effect()        {}

// Cause of the end of a tenure.
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

// Outcome of a request.
type Outcome uint8

// Outcomes of Acquire: Acquired, Taken, Doubt, Shut. Of Release: Done, StillHeld, Doubt, Shut.
const (
	Acquired  Outcome = iota + 1
	Taken             // certainly held by another
	Doubt             // unknown
	Shut              // closed
	Done              // certainly not held any more
	StillHeld         // certainly not released, and still tried
)

func (o Outcome) String() string {
	return [...]string{"none", "acquired", "taken", "doubt", "shut", "done", "still held"}[o]
}
