package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Config configures a core. All fields except Disk, Expiry and Reach are required; the shell fills
// in defaults.
type Config struct {
	// Member is the name under which quorums count this member, stable across restarts.
	Member     string
	NewReplica func() causal.Replica // a fresh random id, never used before

	MinMembers   int           // quorums count at least so many members; 0: this replica is in none
	ForgetAfter  time.Duration // out of view for so long, a member is forgotten; 0: never
	Recorded     bool          // the membership is a record in a store [M9]; MinMembers may be 1
	BeatInterval time.Duration // of heartbeats
	BeatPeers    int           // how many members each heartbeat goes to
	Grace        time.Duration // how long a push that another member mentions may be in flight
	Patience     time.Duration // how long an answer, and each part of it, may take
	WindowCount  int           // pushes kept while they wait for a gap to fill or a cause to arrive
	WindowBytes  int
	LogBytes     int // budget of the event log
	PushBytes    int // bytes pushed to a member and not acknowledged; beyond it the member must ask
	PartBytes    int // size of a part of an answer
	CompareKeys  int // with so many keys, a replica that is too far behind is sent only differences

	// Expiry is a digest of the times to live of entries, which is compared with those of the other
	// members [R31]; 0: no entry expires.
	Expiry uint32

	Disk *DiskConfig // nil: no disk [R46]

	// Fits returns an error if an update must not make the atoms of a key take this many bytes. It
	// is called only for updates that add bytes.
	Fits func(key string, bytes int) error // nil: there is no limit

	Reach func(place string) // test hook, called in the middle of steps; tests panic in it
}

func (c Config) timing() transfer.Timing {
	return transfer.Timing{Patience: c.Patience, Grace: c.Grace, Pause: c.BeatInterval}
}

// Member is another member of the view.
type Member struct{ ID, Address string }

// Level says how many replicas have to take part in an operation before it succeeds. The zero value
// requires this replica alone.
type Level struct {
	Kind  LevelKind
	Nodes int // number of replicas, for Count
	Plus  int // beyond a majority
	Least int // minimum for a majority, in small clusters
}

// LevelKind is the base of a level.
type LevelKind uint8

// The kinds of levels.
const (
	Local LevelKind = iota
	Count
	Majority
	All
	Linear // reads only: a majority, and a majority holds the result before it is returned
)

// need returns the number of replicas, out of n, that the level requires.
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
	// View sets the other members, in any order; the core takes ownership of the slice.
	View struct{ Others []Member }
	// Receive is a message from the network. Member and From are taken from its envelope.
	Receive struct {
		Member   string
		From, To causal.Replica
		Manifest wire.Manifest
		Payload  []byte
	}
	// Update runs Modify on a working copy and commits the changes as one event [R5]. With ID 0 no
	// caller waits for the outcome: the update may share its event with others like it, and there
	// is a Done only if the update was rejected. With More another event follows at once: the
	// update may be committed, and answered, together with those after it, a millisecond later at
	// most if there is a Wake by NextWake [R11].
	Update struct {
		ID       uint64
		Modify   func(*history.Txn) error
		Level    Level
		Deadline time.Time
		More     bool
	}
	// End commits the updates that wait for others.
	End struct{}
	// Read waits until this replica has seen what as many replicas as Level requires had seen when
	// they were asked.
	Read struct {
		ID       uint64
		Level    Level
		Deadline time.Time
	}
	// Drain starts leaving: this replica no longer counts in any quorum. The operation completes
	// when a majority of the other members covers everything that this one has seen [R29]. It
	// fails at once, with Short, if other members are required and none is in view.
	//
	// With Leave the member is then forgotten [M4, M5], unless too few members would remain to
	// agree.
	Drain struct {
		ID       uint64
		Leave    bool
		Deadline time.Time
	}
	// Forget removes a stopped member from the count; a majority must agree [M7]. With Force no
	// other member is asked.
	Forget struct {
		ID       uint64
		Member   string
		Force    bool
		Deadline time.Time
	}
	// Inherit hands over the replica of the previous incarnation of this process, if that
	// incarnation ended after this one had begun. Old must not be used afterwards.
	Inherit struct{ Old *Core }
	// RecordLoaded answers LoadRecord: the record and its version, both empty if there is no
	// record, or an error.
	RecordLoaded struct {
		ID      uint64
		Record  []byte
		Version string
		Err     error
	}
	// RecordSwapped answers SwapRecord. If Swapped is true, the record has been replaced and has a
	// new version. If it is false and Err is nil, the version was another one. After an error the
	// record may or may not have been replaced, or may be replaced later.
	RecordSwapped struct {
		ID      uint64
		Version string
		Swapped bool
		Err     error
	}
	// Wake says that the time returned by NextWake has come. It may arrive at any other time as
	// well.
	Wake struct{}
)

func (View) event()          {}
func (Receive) event()       {}
func (Update) event()        {}
func (End) event()           {}
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
	// Send is a message to the replica To of a member. The payload must not be modified.
	Send struct {
		Member   string
		To       causal.Replica
		Manifest wire.Manifest
		Payload  []byte
		passes   bool // contains nothing that must be on the disk first
	}
	// Done completes the operation ID. Err is the error of Modify. Short says that the level was
	// not reached in time, although the update stands. State is the result of a linearizable read;
	// other reads show the current state of the replica. Interrupted says that a step panicked
	// while the call was under way; its update may have been made.
	Done struct {
		ID          uint64
		Err         error
		Short       *Short
		State       *history.State
		Interrupted bool
		// Store says that the update is in memory and spreads to other members but is not known to
		// be on this replica's disk. It is the error of the commit, or ErrDiskSlow at the deadline
		// [R48].
		Store error
		wait  wait
		until time.Time // when it is sent without waiting for the disk any longer
	}
	// LoadRecord requests the membership record. At most one call to the store is in flight.
	LoadRecord struct{ ID uint64 }
	// SwapRecord requests the replacement of the record if its version is still Old; an empty Old
	// stands for no record.
	SwapRecord struct {
		ID   uint64
		Old  string
		Next []byte
	}
	// Troubled says what is wrong with the membership record; a nil Err says that the problem is
	// over. It should raise an alarm.
	Troubled struct{ Err error }
	// Changed lists, in order, the keys whose values may differ from those before the step [R42].
	Changed struct{ Keys []string }
	// Restored says that another member has more events of this replica than the replica itself, or
	// other ones, as after the restore of a machine snapshot, and that it goes on as a new one,
	// with its state [R3, R4]. No other replica is known to have Alone of its events. It should
	// raise an alarm.
	Restored struct {
		Was, Is causal.Replica
		Alone   uint64
	}
	// Diverged says that a member with an equal vector holds a different state, because of
	// corrupted memory or a bug. It should raise an alarm. The outvoted replica repairs itself
	// [R26].
	Diverged struct{ Member string }
	// Mended says that this replica was outvoted and has taken the state of another one.
	Mended struct{}
	// DuplicateName says that a later process runs under the name of this one, which therefore no
	// longer counts. It should raise an alarm.
	DuplicateName struct{ By string }
	// Forgotten says that other members have removed this one from the count although it runs. It
	// rejoins as a new member.
	Forgotten struct{}
	// OtherExpiry says that a member has begun or ceased to have other times to live than this one.
	OtherExpiry struct {
		Member  string
		Differs bool
	}
	// Unequal says that a member has a different MinMembers.
	Unequal struct {
		Member string
		Least  int
	}
)

func (Send) effect()          {}
func (Done) effect()          {}
func (Changed) effect()       {}
func (LoadRecord) effect()    {}
func (SwapRecord) effect()    {}
func (Troubled) effect()      {}
func (Restored) effect()      {}
func (Diverged) effect()      {}
func (Mended) effect()        {}
func (DuplicateName) effect() {}
func (Forgotten) effect()     {}
func (Unequal) effect()       {}

func (OtherExpiry) effect() {}

// Short says how far an operation got.
type Short struct {
	Needed, Answered int
	Counted          int      // members that the level is counted over
	Missing          []string // the names of those that did not take part
	Handed           bool     // of a Drain: the others have its state but still count the member
	AllLeave         bool     // the same, and all others have said that they are leaving
}

// Stats counts events since the start.
type Stats struct {
	Events         uint64 // own events
	Applied        uint64 // foreign events applied
	Deltas, Bulks  uint64 // answers applied
	Compared       uint64 // bulks that left out the keys found equal
	Malformed      uint64 // messages rejected by the decoder
	Strangers      uint64 // messages from members out of view or from other incarnations
	Forks          uint64 // pushes that do not continue the known events of their origin [R4]
	Waiting        uint64 // pushes that had to wait for a gap or a cause
	WindowDrops    uint64 // pushes dropped because too many waited
	Bases          uint64 // bases fetched from other members
	Awaiting       uint64 // messages that waited for a base
	Cut            uint64 // events cut from the log beyond what every member has
	Diverged       uint64 // times a member was found to hold a different state at an equal vector
	Mended         uint64 // times this replica was outvoted and took the state of another
	Corrupted      uint64 // keys whose atoms were not those that had been written
	LogBytes       int    // estimated bytes of the log
	Filling        bool   // an answer to this replica is in flight
	Filled, ToFill uint64 // progress of that answer, in keys or events
}
