package distributeddata

import (
	"sync/atomic"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/wire"
)

// Status is a picture for people and dashboards. It holds no user data. What is in it is also measured,
// under the names given; counts are since the start of the replicator.
type Status struct {
	Replica crdt.ReplicaID
	Address string // of this member; attribute "node" of every metric, beside "replicator"
	Seen    string // the version vector
	Ready   bool   // concord.ddata.ready, 0 or 1
	Members int    // concord.ddata.members: replicas in view, this one included
	Counted int    // concord.ddata.counted: members that majorities are counted in, seen or not
	// Missing are the members that are counted and not in view, by name, with the address where they were seen
	// last if that is another. concord.ddata.missing is their number.
	Missing []string
	// Epoch is how often the record of the membership has been changed, as far as this member knows; Trouble what is
	// wrong with it, empty if nothing is known to be. Both are zero without Config.Membership.
	Epoch   uint64
	Trouble string
	// NotReady says why the replica is not ready; empty if it is, or is not to be.
	NotReady string

	Keys int // concord.ddata.keys: entries, those with nothing but bookkeeping included

	Updates uint64 // concord.ddata.updates: made here; those that nobody waited for count together
	Applied uint64 // concord.ddata.applied: of others, applied here
	Repairs uint64 // concord.ddata.repairs: answers to requests for what was missed
	Bulks   uint64 // concord.ddata.bulks: those of them that were a state, because the log did not reach back

	// Filled and ToFill are the progress of an answer under way, in keys or events; 0 of 0 if there is none.
	Filled, ToFill uint64 // concord.ddata.filled, concord.ddata.to_fill

	LogBytes int // concord.ddata.log.bytes: kept for members that may have missed something
	// Lag is how many updates that this replica has seen each member, by address, is not known to have
	// seen; whoever is at the top of it holds the log. concord.ddata.lag, by member.
	Lag map[string]uint64

	// Diverged counts how often another replica with an equal vector was found to hold something else,
	// Rotten entries whose memory had changed by itself, and Mended how often this replica was outvoted
	// and took another's state. All three should be 0 for ever: raise an alarm.
	Diverged uint64 // concord.ddata.diverged
	Rotten   uint64 // concord.ddata.rotten
	Mended   uint64 // concord.ddata.mended

	Malformed uint64 // concord.ddata.malformed: messages of other members that could not be read
	Strangers uint64 // concord.ddata.strangers: messages from outside the view or of earlier incarnations
	Waiting   uint64 // concord.ddata.waiting: updates that came before what they follow

	// Faults counts functions of the application (Adapt, codecs while subscribers are told, processes that take a
	// response) that panicked or called runtime.Goexit on the replicator's goroutine. concord.ddata.faults.
	Faults uint64
	// Panics counts how often a bug of this library interrupted the replicator, which goes on with what it held. It should
	// be 0 for ever: raise an alarm. concord.ddata.panics.
	Panics uint64

	Sent map[string]Traffic // to other members, by kind; concord.ddata.sent.messages and .bytes, by kind
}

// Traffic is a count of messages and the bytes in them, without envelopes and framing.
type Traffic struct{ Messages, Bytes uint64 }

// Status returns the present state of the replica; zero before it runs. Between two lives it is the last one, not
// ready. Counts go on in the next life.
func (r *Replicator) Status() Status {
	p := r.state()
	if p == nil {
		return Status{}
	}
	s := Status{
		Replica: crdt.ReplicaID(p.replica), Ready: p.ready, Members: p.members, Keys: p.keys.Len(), Seen: p.seen.String(),
		Updates: p.stats.Events, Applied: p.stats.Applied, Repairs: p.stats.Deltas + p.stats.Bulks, Bulks: p.stats.Bulks,
		Filled: p.stats.Filled, ToFill: p.stats.ToFill, LogBytes: p.stats.LogBytes,
		Diverged: p.stats.Diverged, Rotten: p.stats.Rotten, Mended: p.stats.Mended,
		Malformed: p.stats.Malformed, Strangers: p.stats.Strangers, Waiting: p.stats.Waiting,
		Faults: r.faults.count.Load(), Panics: r.panics.Load(), Lag: map[string]uint64{}, Sent: r.traffic.all(),
	}
	if p.roll != nil {
		s.Counted, s.Missing = p.roll.Counted, p.roll.Missing()
		s.Epoch, s.Trouble = p.roll.Epoch, p.roll.Trouble
	}
	if l := r.present.Load(); l != nil {
		if err := l.check(); err != nil {
			s.NotReady = err.Error()
		}
	}
	if p.view != nil {
		s.Address = p.view.Self.Address
	}
	for _, l := range p.lags {
		s.Lag[p.address(l.Member)] = l.Events
	}
	return s
}

// traffic counts what was sent, by manifest.
type traffic [wire.ReplicatorMembers + 1]struct{ messages, bytes atomic.Uint64 }

func (t *traffic) count(m wire.Manifest, bytes int) {
	t[m].messages.Add(1)
	t[m].bytes.Add(uint64(bytes))
}

func (t *traffic) all() map[string]Traffic {
	out := map[string]Traffic{}
	for m := wire.ReplicatorBeat; m <= wire.ReplicatorMembers; m++ {
		if n := t[m].messages.Load(); n > 0 {
			out[m.String()] = Traffic{n, t[m].bytes.Load()}
		}
	}
	return out
}

// Traffic returns the sum of all that was sent.
func (s Status) Traffic() (sum Traffic) {
	for _, t := range s.Sent {
		sum.Messages += t.Messages
		sum.Bytes += t.Bytes
	}
	return sum
}
