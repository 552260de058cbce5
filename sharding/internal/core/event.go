package core

import "time"

// Member is one incarnation of one member.
type Member struct {
	ID          string
	Incarnation uint64
	Address     string
}

// Version orders the assignments of a shard: by the tenure of the coordinator that made them, then
// by the coordinator's count. The zero Version is that of a shard that was never assigned.
type Version struct{ Epoch, N uint64 }

// Less reports whether v is older than o.
func (v Version) Less(o Version) bool {
	return v.Epoch < o.Epoch || v.Epoch == o.Epoch && v.N < o.N
}

// Assignment says which region should have a shard. Of two assignments the one with the larger
// version wins.
type Assignment struct {
	Version Version
	Home    Member
	Before  []Member // may still have it: its last holder, and all assigned since
}

// Entry is the assignment of one shard.
type Entry struct {
	Shard int
	Assignment
}

// Blank is the state in which the last holder left a lease; see package leases.
type Blank struct {
	Version string
	Token   uint64
}

// Message is a message between regions and the coordinator. Messages may be lost, duplicated,
// delayed and reordered.
type Message interface{ message() }

// Messages. Token is that of the tenure that a message is about.
type (
	// Table is sent by the coordinator. It has entries that the receiver may not know, and the sum
	// of all entries.
	Table struct {
		Epoch   uint64
		Beat    uint64 // rises with each Table of the epoch; 0 if the sender does not number them
		N       uint64 // assignments made in this epoch so far
		Sum     uint64
		Entries []Entry
		Over    bool   // every region leaves: no shard needs to be waited for
		Held    uint64 // of the receiver's last Report; 0 if there is none
	}
	// Report is the answer to a Table. Its entries may be merged at any time. The rest describes
	// the region when it sent the report, and counts until one with a larger Beat has arrived.
	//
	// Its Farewell says that the region has ended: it has no shard, takes none, and answers no
	// Table.
	Report struct {
		Epoch   uint64 // of the newest coordinator heard
		Beat    uint64 // largest of the Tables of that epoch heard; 0 if they are not numbered
		N       uint64 // of the last Table of that epoch with which this region agreed
		Sum     uint64
		Entries []Entry // set if the sums differ
		// Active lists the active shards, and Held is a sum over them. Active is nil if the Table
		// named this Held: the receiver has a list with that sum.
		Active  []Tenure
		Held    uint64
		Leaving bool
		Failing bool // the lease store or the store of remembered entities does not answer
		Memory  Memory
	}
	// Tenure is an active shard.
	Tenure struct {
		Shard int
		Token uint64
	}
	// AskFree asks whether the receiver may still have a shard. It carries the assignment that is
	// the reason for the question, in case the receiver does not know it.
	AskFree struct{ Entry }
	// Free is the answer to AskFree: the sender does not have the shard, and will not have it under
	// assignments up to this version.
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
	// Where asks for the Active of a shard.
	Where struct{ Shard int }
	// Pause asks the receiver to send no more messages under a tenure.
	Pause struct {
		Shard int
		Token uint64
	}
	// Flush is the answer to Pause: the number of messages sent under the tenure.
	Flush struct {
		Shard  int
		Token  uint64
		Number uint64
	}
	// Inactive reports that a tenure was lost.
	Inactive struct {
		Shard int
		Token uint64
	}
	// NotHere is the answer to Data under a tenure that has ended.
	NotHere struct {
		Shard int
		Token uint64
	}
	// Data carries a message to an entity. Delivery is the number of the delivery, or 0. Again
	// means that the delivery was sent before and may have been handled.
	Data struct {
		Shard    int
		Token    uint64
		Number   uint64
		Body     Body
		Delivery uint64
		Again    bool
	}
	// Sent asks the receiver to report Taken when it comes: the sender has sent it this many bytes
	// for entities.
	Sent struct{ Bytes uint64 }
	// Taken is the answer to Sent.
	Taken struct{ Bytes uint64 }
	// Confirm reports that a delivery was handled.
	Confirm struct {
		Shard  int
		Number uint64
	}
)

// Farewell returns the Report of a region that has ended.
func Farewell() Report { return Report{Leaving: true} }

// Ended reports whether r is a Farewell. Answers to Tables have an epoch.
func (r Report) Ended() bool {
	return r.Leaving && !r.Failing && r.Epoch == 0 && r.Beat == 0 && r.N == 0 && r.Sum == 0 &&
		len(r.Entries) == 0 && len(r.Active) == 0
}

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
func (Confirm) message()  {}
func (Sent) message()     {}
func (Taken) message()    {}

// Body is a message of the application to an entity, and the number of bytes that it counts for.
type Body struct {
	ID    string
	Value any
	Size  int
}

// Event is an input of a Region or an Allocation.
type Event interface{ event() }

// Inputs of both.
type (
	// View lists the members that take part in the type, and identifies this member.
	View struct {
		Self    Member
		Members []Member
		// Newest lists the members with the newest version of the application, while versions
		// differ. Only an Allocation uses it.
		Newest  []Member
		Removed bool // this member was expelled, permanently
	}
	// Received is a message from a member.
	Received struct {
		From    Member
		Message Message
	}
	// Known holds entries, of any coordinator, from a replica of the table.
	Known struct{ Entries []Entry }
	// Wake advances the time.
	Wake struct{}
)

// Inputs of a Region. Each names the attempt or the tenure that it is about, so that a late one is
// recognized.
type (
	// Waits reports that messages of this process wait for a shard: the first one does since none
	// did, or they still do after Shut.
	Waits struct{ Shard int }
	// Blocked is a result of Open: messages wait until the host has taken others.
	Blocked struct {
		Shard int
		Token uint64
	}
	// NoCredit is the result of a Tell with a delivery that was not sent, because its host has not
	// taken enough of what was sent before.
	NoCredit struct {
		Shard         int
		Token, Number uint64
		Again         bool // of the Tell
	}
	// Arrived is a message of another member that was accepted: a delivery, or one that the Region
	// waits for, without its body.
	Arrived struct {
		From Member
		Data Data
	}
	// Counted is the result of Admit with Count: what was accepted in the tenure before. Last is
	// the number of the last message of each member. Each of the deliveries, and each message that
	// is accepted from then on, results in one Arrived.
	Counted struct {
		Shard      int
		Token      uint64
		Last       map[Member]uint64
		Deliveries uint64
	}
	// BeginDelivery is a message of this process for an entity, which is sent until it is
	// confirmed. Number is unique in this region. Again means that an earlier region may have sent
	// it. It results in one Conclude, unless EndDelivery comes first.
	BeginDelivery struct {
		Shard  int
		Number uint64
		Body   Body
		Again  bool
	}
	// EndDelivery gives up a delivery.
	EndDelivery struct {
		Shard  int
		Number uint64
	}
	// Handled is the result of Deliver for a delivery. OK means that the entity has handled it, and
	// the tenure had not ended after that.
	Handled struct {
		Shard  int
		Token  uint64
		From   Member
		Number uint64
		OK     bool
	}
	// Held is the result of Acquire: the lease was granted.
	Held struct {
		Shard          int
		Attempt, Token uint64
	}
	// NotHeld is the result of Acquire: the lease was not granted, and nothing needs to be
	// released. Taken means that another session holds it.
	NotHeld struct {
		Shard   int
		Attempt uint64
		Taken   bool
	}
	// Lost reports that a tenure has ended.
	Lost struct {
		Shard int
		Token uint64
	}
	// Ended reports that all entities of a tenure have stopped; it is the result of Stop and
	// StopNow.
	Ended struct {
		Shard int
		Token uint64
	}
	// Released is the result of Release. Certain means that the lease is free, and Blank is the
	// state in which it was left, if known.
	Released struct {
		Shard   int
		Token   uint64
		Certain bool
		Blank   Blank
	}
	// Looked is the result of Look: whether another living session holds the coordinator's lease.
	Looked struct{ Other bool }
	// Store reports whether the lease store fails to answer, and what is known of the store of
	// remembered entities.
	Store struct {
		Failing bool
		Memory  Memory
	}
	// Leave asks this region to stop hosting.
	Leave struct{}
	// Finish reports that no message of this process follows. The other members are asked to
	// confirm what they were sent; see Region.Finished.
	Finish struct{}
	// Left reports that the Leave has completed.
	Left struct{}
	// Gate reports whether guarded work may run on this member. It may initially.
	Gate struct{ Open bool }
)

// Inputs of an Allocation.
type (
	// Move requests to move a shard.
	Move struct {
		Shard int
		To    Member
	}
)

func (View) event()          {}
func (Received) event()      {}
func (Wake) event()          {}
func (Waits) event()         {}
func (Blocked) event()       {}
func (NoCredit) event()      {}
func (Arrived) event()       {}
func (Counted) event()       {}
func (BeginDelivery) event() {}
func (EndDelivery) event()   {}
func (Handled) event()       {}
func (Held) event()          {}
func (NotHeld) event()       {}
func (Lost) event()          {}
func (Ended) event()         {}
func (Released) event()      {}
func (Looked) event()        {}
func (Store) event()         {}
func (Leave) event()         {}
func (Finish) event()        {}
func (Left) event()          {}
func (Gate) event()          {}
func (Move) event()          {}
func (Known) event()         {}

// Effect is an output, to be carried out in order.
type Effect interface{ effect() }

// Outputs.
type (
	// Tell sends a message to a member, which may be this one. It completes the Number of a Flush
	// and of Data, and the Bytes of Sent, which other messages change.
	Tell struct {
		To      Member
		Message Message
	}
	// Acquire starts one attempt to acquire the lease of a shard, which does not wait for another
	// holder. It results in one Held or NotHeld, within the operation timeout of the lease.
	Acquire struct {
		Shard   int
		Attempt uint64
		Blank   Blank
	}
	// Start lets entities run in a tenure. If the tenure has already ended, it results in Lost and
	// Ended.
	Start struct {
		Shard int
		Token uint64
	}
	// Admit accepts messages of other members under this tenure from now on, and under no other; 0
	// means under none. They go to their entities. Messages that are not accepted are Received, and
	// deliveries are Arrived. With Count, all accepted messages are Arrived from now on, and those
	// before are Counted.
	Admit struct {
		Shard int
		Token uint64
		Count bool
	}
	// Stop asks the entities of a tenure to stop once they have handled their messages.
	Stop struct {
		Shard int
		Token uint64
	}
	// StopNow stops them after the message that each is handling.
	StopNow struct {
		Shard int
		Token uint64
	}
	// Release releases the lease of a tenure.
	Release struct {
		Shard int
		Token uint64
	}
	// Deliver passes a delivery to an entity in the tenure. It results in one Handled.
	Deliver struct {
		Shard   int
		Token   uint64
		Body    Body
		Receipt Receipt
	}
	// Receipt identifies a delivery at its host.
	Receipt struct {
		From   Member
		Number uint64
		Again  bool // it may have been handled before
	}
	// Conclude ends a delivery.
	Conclude struct {
		Shard   int
		Number  uint64
		Body    Body
		Outcome Outcome
	}
	// Open sends the messages of this process to a shard, first those that wait, to this tenure
	// from now on: in order, without a step of the Region, as far as its host has taken what was
	// sent before. If some must wait, it results in Blocked.
	Open struct {
		Shard int
		Host  Member
		Token uint64
	}
	// Shut lets the messages of this process to a shard wait from now on.
	Shut struct{ Shard int }
	// Drop counts a message that was not accepted: of another tenure, or a duplicate. Body is that
	// of a message that no region has any more; it is empty for deliveries and duplicates.
	Drop struct {
		Shard    int
		Repeated bool
		Body     Body
	}
	// Orphaned reports that no message sent under the tenure is answered any more: the host is gone
	// and did not leave in order, or it has lost the lease and another tenure has begun.
	Orphaned struct{ Tenure }
	// Look asks which session holds the coordinator's lease.
	Look struct{}
	// Assigned writes an entry to the replicated table.
	Assigned struct{ Entry }
)

func (Tell) effect()     {}
func (Acquire) effect()  {}
func (Start) effect()    {}
func (Admit) effect()    {}
func (Stop) effect()     {}
func (StopNow) effect()  {}
func (Release) effect()  {}
func (Deliver) effect()  {}
func (Conclude) effect() {}
func (Open) effect()     {}
func (Shut) effect()     {}
func (Drop) effect()     {}
func (Orphaned) effect() {}
func (Look) effect()     {}
func (Assigned) effect() {}

// Outcome is how a delivery ended.
type Outcome uint8

// Outcomes. The last two are those of Region.Abandon.
const (
	Confirmed Outcome = iota // it was handled
	Full                     // too many are not confirmed; it was not sent
	Unsent                   // it was not sent
	InDoubt                  // it was sent, and not confirmed
)

// Config configures the cores of one type.
type Config struct {
	// Type is the name of the type. It decides which members get the odd shards.
	Type   string
	Shards int
	// Repeat is how often an unanswered message is sent again.
	Repeat time.Duration
	// FlushTimeout bounds how long a host waits for other regions before it stops its entities.
	FlushTimeout time.Duration
	// HandOff bounds a planned stop, after which the entities are stopped now.
	HandOff time.Duration
	// Patience is how long a new home waits for an answer of the regions that may still have the
	// shard.
	Patience time.Duration
	// Retry is the interval between attempts to acquire a lease that another session holds.
	Retry time.Duration
	// Orphan is how long a region hears no coordinator before it checks whether it is cut off.
	Orphan time.Duration
	// Beat is how often the coordinator sends tables, Settle how long a new one only listens, and
	// Fit how long a region counts as reachable after a report.
	Beat, Settle, Fit time.Duration
	// Moves is how many shards may be moving at once for a better balance; 0 disables such moves.
	// Shards move when the view has not changed for Stable.
	Moves  int
	Stable time.Duration
	// Spread is by how many shards the homes with the most and the fewest may differ before shards
	// move; at least 1.
	Spread int
	// Consult has homes chosen by a user function, which is called when the set of fit members
	// changes, and every Again. A shard without a home waits up to Answer for it.
	Consult       bool
	Again, Answer time.Duration
	// Rendezvous chooses homes by hashing rather than by how many shards each has.
	Rendezvous bool
	// Resend is how long a delivery waits for its confirmation before it is sent again under the
	// same tenure; it doubles each time up to MaxResend.
	Resend, MaxResend time.Duration
	// Handled is how many deliveries that were handled a shard remembers during a tenure.
	Handled int
	// Buffer bounds the deliveries of a region that are not confirmed, and BufferBytes their size;
	// one shard may use an eighth.
	Buffer, BufferBytes int
}
