package core

import (
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Config of a core. All fields but Disk and Reach are required; the shell fills in defaults.
type Config struct {
	Member     string                // the name under which quorums count this member, stable over restarts
	NewReplica func() causal.Replica // a fresh random id, never used before

	MinMembers   int           // quorums are counted in so many members at least; 0: this replica is in none
	ForgetAfter  time.Duration // how long a member may be out of view before others forget it; 0: for ever
	Recorded     bool          // the membership is a record in a store [M9]; MinMembers may be 1
	BeatInterval time.Duration // of heartbeats
	BeatPeers    int           // how many members each heartbeat goes to
	Grace        time.Duration // how long a push that another member mentions may still be on its way
	Patience     time.Duration // how long an answer, and each part of it, may take
	WindowCount  int           // pushes kept while they wait for a gap to fill or a cause to arrive
	WindowBytes  int
	LogBytes     int // budget of the event log
	PushBytes    int // pushed to one member and not acknowledged yet; beyond it the member has to ask
	PartBytes    int // size of a part of an answer
	CompareKeys  int // a replica that holds so many keys, and is too far behind, is sent only what differs

	Disk *DiskConfig // nil: nothing is kept [R60]

	Reach func(place string) // called in the middle of steps; only for tests, which panic there
}

// Member is another member of the view.
type Member struct{ ID, Address string }

// Level says how many replicas have to take part in an operation before it succeeds. The zero value
// is this replica alone.
type Level struct {
	Kind  LevelKind
	Nodes int // exactly so many, for Count
	Plus  int // beyond a majority
	Least int // a majority of small clusters is raised to this
}

// LevelKind is the base of a level.
type LevelKind uint8

// The kinds of levels.
const (
	Local LevelKind = iota
	Count
	Majority
	All
	Linear // reads only: a majority, and what is shown is on a majority before it is
)

// need returns how many of n replicas the level asks for.
func (l Level) need(n int) int {
	switch l.Kind {
	case Count:
		return l.Nodes
	case Majority, Linear:
		return min(n, max(n/2+1+l.Plus, l.Least))
	case All:
		return n
	}
	return 1
}

// Event is an input of Step.
type Event interface{ event() }

// The inputs.
type (
	// View is the set of the other members, in any order; the core owns the slice from now on.
	View struct{ Others []Member }
	// Receive is a message from the network. Member and From are as its envelope says.
	Receive struct {
		Member   string
		From, To causal.Replica
		Manifest wire.Manifest
		Payload  []byte
	}
	// Update runs Modify on a working copy and makes what it did one event [R3]. With ID 0 nobody waits for the
	// outcome: it may share its event with others like it, and is Done only if it was refused.
	Update struct {
		ID       uint64
		Modify   func(*Txn) error
		Level    Level
		Deadline time.Time
	}
	// Read asks for a replica that has seen whatever Level replicas had seen when they were asked.
	Read struct {
		ID       uint64
		Level    Level
		Deadline time.Time
	}
	// Drain begins to leave: this replica counts in no quorum any more. It is done when a majority of the
	// others covers all that this one has seen [R21a, R53]. It ends at once, short, if there must be others
	// and none is in view.
	//
	// With Leave the member is then forgotten [M4, M5], unless too few would be left to agree to that.
	Drain struct {
		ID       uint64
		Leave    bool
		Deadline time.Time
	}
	// Forget takes a member that has stopped out of the count, which a majority must agree to [M7]. With Force
	// nobody is asked.
	Forget struct {
		ID       uint64
		Member   string
		Force    bool
		Deadline time.Time
	}
	// Inherit brings the replica of the former life of this process, which ended after this one had begun.
	// It must not be used any more.
	Inherit struct{ Old *Core }
	// RecordLoaded answers LoadRecord: the record and its version, both empty if there is none; or an error.
	RecordLoaded struct {
		ID      uint64
		Record  []byte
		Version string
		Err     error
	}
	// RecordSwapped answers SwapRecord: Swapped says that the record is the next one now, under a new version. Without,
	// and without an error, the version was another. After an error it may be either, also later.
	RecordSwapped struct {
		ID      uint64
		Version string
		Swapped bool
		Err     error
	}
	// Wake says that the time NextWake asked for has come. It may come at any other time too.
	Wake struct{}
)

func (View) event()          {}
func (Receive) event()       {}
func (Update) event()        {}
func (Read) event()          {}
func (Drain) event()         {}
func (Forget) event()        {}
func (Inherit) event()       {}
func (RecordLoaded) event()  {}
func (RecordSwapped) event() {}
func (Wake) event()          {}

// Effect is an output of Step.
type Effect interface{ effect() }

// The outputs, to be carried out in order.
type (
	// Send is a message to the replica To of a member. The payload must not be written to.
	Send struct {
		Member   string
		To       causal.Replica
		Manifest wire.Manifest
		Payload  []byte
		passes   bool // it says nothing that the disk must have
	}
	// Done ends the operation ID: Err is what Modify returned; Short tells that the level was not
	// reached in time, though the update stands. State is what a linearizable read shows; other reads
	// show what the replica holds. Interrupted is the end of a call whose step panicked before the call was
	// under way; an update may have been made all the same.
	Done struct {
		ID          uint64
		Err         error
		Short       *Short
		State       *State
		Interrupted bool
		// Store says that the update stands in memory, and goes on to the others, but is not known to be on this
		// replica's disk: what the commit returned, or ErrDiskSlow at the deadline [R62].
		Store error
		wait  wait
		until time.Time // it ends without the disk
	}
	// LoadRecord asks for the record of the membership. One call of the store is under way at a time.
	LoadRecord struct{ ID uint64 }
	// SwapRecord asks for the replacement of the record if its version is still Old; empty: if there is none.
	SwapRecord struct {
		ID   uint64
		Old  string
		Next []byte
	}
	// Troubled says what is wrong with the record of the membership, and, with nil, that nothing is any more. It
	// should raise an alarm.
	Troubled struct{ Err error }
	// Changed lists, in order, the keys whose values may be others than before the step [R54].
	Changed struct{ Keys []string }
	// Reborn says that peers knew more of this replica's events than itself, as after the restore of
	// a machine snapshot, and that it goes on under a new id [R2a]. It should raise an alarm.
	Reborn struct{ Was, Is causal.Replica }
	// Diverged says that a member has seen the same events and holds something else: memory that
	// rots, or a bug. It should raise an alarm. The replica that is outvoted mends itself [R25].
	Diverged struct{ Member string }
	// Mended says that this replica was the one, and has taken the state of another.
	Mended struct{}
	// Usurped says that a later process runs under the name of this one, which therefore counts no more. It
	// should raise an alarm.
	Usurped struct{ By string }
	// Forgotten says that others have taken this member out of the count although it runs. It enters anew.
	Forgotten struct{}
	// Unequal says that a member has another MinMembers than this one.
	Unequal struct {
		Member string
		Least  int
	}
)

func (Send) effect()       {}
func (Done) effect()       {}
func (Changed) effect()    {}
func (LoadRecord) effect() {}
func (SwapRecord) effect() {}
func (Troubled) effect()   {}
func (Reborn) effect()     {}
func (Diverged) effect()   {}
func (Mended) effect()     {}
func (Usurped) effect()    {}
func (Forgotten) effect()  {}
func (Unequal) effect()    {}

// Short says how far an operation came.
type Short struct {
	Needed, Answered int
	Counted          int      // members that the level is counted in
	Missing          []string // of these, the names of those that did not take part
	Handed           bool     // of a Drain: the others have what this replica held, but count it still
}

// Stats counts what happened since the start.
type Stats struct {
	Events         uint64 // own events
	Applied        uint64 // foreign events applied
	Deltas, Bulks  uint64 // answers applied
	Compared       uint64 // of the bulks: those that left out the keys found equal
	Malformed      uint64 // messages refused by the decoder
	Strangers      uint64 // messages from members out of view or from other incarnations
	Forks          uint64 // pushes that do not go on with the events known of their origin [R57]
	Waiting        uint64 // pushes that had to wait for a gap or a cause
	WindowDrops    uint64 // pushes dropped because too many waited
	Bases          uint64 // that vectors are told with, fetched from others
	Awaiting       uint64 // messages that waited for such a base
	Cut            uint64 // events cut from the log beyond what every member has
	Diverged       uint64 // times a member was found to hold something else at the same vector
	Mended         uint64 // times this replica took the state of another, since its own was outvoted
	Rotten         uint64 // keys whose atoms were not those that had been put there
	LogBytes       int    // in the log, an estimate
	Filling        bool   // an answer is under way to this replica
	Filled, ToFill uint64 // of its keys or events
}
