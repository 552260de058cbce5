package core

import "time"

// Member is one incarnation of one member.
type Member struct {
	ID          string
	Incarnation uint64
	Address     string
}

// Version orders the assignments of a shard: by the tenure of the coordinator that made them, then by
// its count. The zero Version is that of a shard that was never assigned.
type Version struct{ Epoch, N uint64 }

// Less tells whether v is older than o.
func (v Version) Less(o Version) bool { return v.Epoch < o.Epoch || v.Epoch == o.Epoch && v.N < o.N }

// Assignment says which region should have a shard. Of two the larger version counts.
type Assignment struct {
	Version Version
	Home    Member
	Before  []Member // that may still have it: the last that had it, and all it was assigned to since
}

// Entry is the assignment of one shard.
type Entry struct {
	Shard int
	Assignment
}

// Blank is how a lease was left by its last holder; see coordination.Blank.
type Blank struct {
	Version string
	Token   uint64
}

// Message is what regions and the coordinator tell each other. Each may be lost, doubled, late and out
// of order.
type Message interface{ message() }

// Messages. Token is that of the tenure of which they speak.
type (
	// Table is the word of the coordinator: entries that the receiver may not know, and the sum of all.
	Table struct {
		Epoch   uint64
		N       uint64 // assignments made in this epoch so far
		Sum     uint64
		Entries []Entry
		Over    bool // every region leaves: no shard is waited for
	}
	// Report answers a Table.
	Report struct {
		Epoch   uint64 // of the newest coordinator heard
		N       uint64 // of the last Table of that epoch with which this region agreed
		Sum     uint64
		Entries []Entry // if the sums differ
		Active  []Tenure
		Leaving bool
		Failing bool // the lease store does not answer
	}
	// Tenure is an active shard.
	Tenure struct {
		Shard int
		Token uint64
	}
	// AskFree asks whether the receiver may still have a shard. It carries the assignment on which it is
	// asked, for a receiver that has not heard of it.
	AskFree struct{ Entry }
	// Free answers: it has not, and will not under assignments up to this version.
	Free struct {
		Shard   int
		Version Version
		Blank   Blank
	}
	// Active announces a tenure.
	Active struct {
		Shard int
		Token uint64
	}
	// Where asks for it.
	Where struct{ Shard int }
	// Pause asks to send nothing more under a tenure.
	Pause struct {
		Shard int
		Token uint64
	}
	// Flush answers: so many messages were sent under it.
	Flush struct {
		Shard  int
		Token  uint64
		Number uint64
	}
	// Inactive says that a tenure was lost.
	Inactive struct {
		Shard int
		Token uint64
	}
	// NotHere answers Data under a tenure that is over.
	NotHere struct {
		Shard int
		Token uint64
	}
	// Data is a message to an entity.
	Data struct {
		Shard  int
		Token  uint64
		Number uint64
		Body   Body
	}
)

func (Table) message()    {}
func (Report) message()   {}
func (AskFree) message()  {}
func (Free) message()     {}
func (Active) message()   {}
func (Where) message()    {}
func (Pause) message()    {}
func (Flush) message()    {}
func (Inactive) message() {}
func (NotHere) message()  {}
func (Data) message()     {}

// Body is a message of the application to an entity, and how many bytes it counts for.
type Body struct {
	ID    string
	Value any
	Size  int
}

// Event is an input of a Region or an Allocation.
type Event interface{ event() }

// Inputs of both.
type (
	// View says which members are there that take part in the type, and who we are.
	View struct {
		Self    Member
		Members []Member
		Removed bool // we have been expelled; final
	}
	// Received brings a message of a member.
	Received struct {
		From    Member
		Message Message
	}
	// Known is what replicas of the table have: entries of any coordinator.
	Known struct{ Entries []Entry }
	// Wake lets time pass.
	Wake struct{}
)

// Inputs of a Region. Each names the attempt or the tenure of which it speaks, so that one that is late
// is recognised.
type (
	// Send brings a message of this process for an entity of a shard.
	Send struct {
		Shard int
		Body  Body
	}
	// Held answers Acquire: the lease was granted.
	Held struct {
		Shard          int
		Attempt, Token uint64
	}
	// NotHeld answers Acquire: it was not, and nothing is left behind. Taken: another session has it.
	NotHeld struct {
		Shard   int
		Attempt uint64
		Taken   bool
	}
	// Lost says that a tenure is over.
	Lost struct {
		Shard int
		Token uint64
	}
	// Ended says that no entity of a tenure is left; it answers Stop and Kill.
	Ended struct {
		Shard int
		Token uint64
	}
	// Released answers Release. Certain: the lease is free, and Blank is how it was left, if that is known.
	Released struct {
		Shard   int
		Token   uint64
		Certain bool
		Blank   Blank
	}
	// Looked answers Look: another living session holds the coordinator's lease.
	Looked struct{ Other bool }
	// Store says whether the lease store has stopped to answer.
	Store struct{ Failing bool }
	// Leave says that this region is to host no more.
	Leave struct{}
	// Gate says whether guarded work may run at this member. It may at first.
	Gate struct{ Open bool }
)

// Inputs of an Allocation.
type (
	// Move asks to move a shard by choice.
	Move struct {
		Shard int
		To    Member
	}
)

func (View) event()     {}
func (Received) event() {}
func (Wake) event()     {}
func (Send) event()     {}
func (Held) event()     {}
func (NotHeld) event()  {}
func (Lost) event()     {}
func (Ended) event()    {}
func (Released) event() {}
func (Looked) event()   {}
func (Store) event()    {}
func (Leave) event()    {}
func (Gate) event()     {}
func (Move) event()     {}
func (Known) event()    {}

// Effect is an output, to be carried out in order.
type Effect interface{ effect() }

// Outputs.
type (
	// Tell sends a message to a member, which may be ourselves.
	Tell struct {
		To      Member
		Message Message
	}
	// Acquire begins one attempt to acquire the lease of a shard, which does not wait for another holder.
	// It ends with one Held or NotHeld, within the operation timeout of the lease.
	Acquire struct {
		Shard   int
		Attempt uint64
		Blank   Blank
	}
	// Start says that entities may run under a tenure. If it is over by now, answer with Lost and Ended.
	Start struct {
		Shard int
		Token uint64
	}
	// Stop asks the entities of a tenure to end when they have handled what they have.
	Stop struct {
		Shard int
		Token uint64
	}
	// Kill ends them after the message that each is handling.
	Kill struct {
		Shard int
		Token uint64
	}
	// Release gives a tenure up.
	Release struct {
		Shard int
		Token uint64
	}
	// Deliver hands a message to an entity that runs under the tenure.
	Deliver struct {
		Shard int
		Token uint64
		Body  Body
	}
	// Refuse gives a message back: too many wait for the shard, or for all shards.
	Refuse struct {
		Shard int
		Body  Body
	}
	// Drop counts a message that was not taken: of another tenure, or repeated.
	Drop struct {
		Shard    int
		Repeated bool
	}
	// Look asks who holds the coordinator's lease.
	Look struct{}
	// Assigned writes an entry into the replicated table.
	Assigned struct{ Entry }
)

func (Tell) effect()     {}
func (Acquire) effect()  {}
func (Start) effect()    {}
func (Stop) effect()     {}
func (Kill) effect()     {}
func (Release) effect()  {}
func (Deliver) effect()  {}
func (Refuse) effect()   {}
func (Drop) effect()     {}
func (Look) effect()     {}
func (Assigned) effect() {}

// Config of the cores of one type.
type Config struct {
	Shards int
	// Repeat is how often a message is said again that has not been answered.
	Repeat time.Duration
	// FlushTimeout bounds how long a host waits for other regions before it stops its entities.
	FlushTimeout time.Duration
	// HandOff bounds a planned stop; then the entities are killed.
	HandOff time.Duration
	// Patience is how long a new home waits for the word of those that may still have the shard.
	Patience time.Duration
	// Retry is how often a lease is tried that another session holds.
	Retry time.Duration
	// Orphan is how long a region hears nothing of a coordinator before it looks whether it is cut off.
	Orphan time.Duration
	// Beat is how often the coordinator speaks, Settle how long a new one listens, and Fit how long the
	// word of a region holds that it hears it.
	Beat, Settle, Fit time.Duration
	// Moves is how many shards may be on their way at once for a better balance; 0: none is moved for that. They are
	// moved when the view has not changed for Stable.
	Moves  int
	Stable time.Duration
	// Spread is by how many shards the homes with most and with fewest may differ before shards move; at least 1.
	Spread int
	// Consult has homes chosen by a function of the user, which is asked when other members are fit, and every Again. A
	// shard without a home waits Answer for it.
	Consult       bool
	Again, Answer time.Duration
	// Rendezvous chooses homes by hashing, and not by how many shards each has.
	Rendezvous bool
	// Buffer bounds the messages that wait at a region, and their bytes; one shard may have an eighth.
	Buffer, BufferBytes int
}
