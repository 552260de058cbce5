package distributeddata

import (
	"slices"
	"sync/atomic"
	"time"

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
	// OtherDurable are the addresses of members whose Config.Durable is another list than here. It should be empty.
	OtherDurable []string // concord.ddata.other_durable is their number
	// Durable is what concerns the durable keys alone; nil without Config.Durable. What stands beside it is of both: counts
	// are sums, Ready and NotReady hold if they do for both, and Missing are those that are missing for one of them. Replica,
	// Seen, Counted, Epoch and Trouble are of the volatile keys. With "*" no key is volatile, and all of this is of the
	// durable ones.
	Durable *DurableStatus
	// NotReady says why the replica is not ready; empty if it is, or is not to be.
	NotReady string

	Keys int // concord.ddata.keys: entries, those with nothing but bookkeeping included

	// Expired counts the entries that this member has deleted since they had not been used for their time to live, and Touches
	// the uses it has told the others of that were no part of an update: see Config.Expiry.
	Expired uint64 // concord.ddata.expired
	Touches uint64 // concord.ddata.touches

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

	// NearLimits are the limits of Config of which more than half was used within the last minute, by name.
	// concord.ddata.near_limit is 1 or 0, by setting.
	NearLimits []string

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
		Replica: crdt.ReplicaID(p.main().replica), Ready: p.allReady(), Members: p.members, Seen: p.main().seen.String(), OtherDurable: p.others,
		Faults: r.faults.count.Load(), Panics: r.panics.Load(), Lag: map[string]uint64{}, Sent: r.traffic.all(),
		Expired: r.expired.Load(), Touches: r.touches.Load(),
		NearLimits: r.near.of(time.Now()),
	}
	if roll := p.main().roll; roll != nil {
		s.Counted, s.Epoch, s.Trouble = roll.Counted, roll.Epoch, roll.Trouble
	}
	if d := p.durable; d != nil {
		s.Durable = d.status()
		s.Durable.Rows, s.Durable.Bytes = r.disk.rows.Load(), r.disk.bytes.Load()
	}
	for h := range p.halves() {
		s.add(h)
		if h == p.main() || !p.choice.all() {
			s.miss(h)
		}
		for _, l := range h.lags {
			s.Lag[p.address(l.Member)] += l.Events
		}
	}
	if l := r.present.Load(); l != nil {
		if err := l.check(); err != nil {
			s.NotReady = err.Error()
		}
	}
	if p.view != nil {
		s.Address = p.view.Self.Address
	}
	return s
}

// DurableStatus is the part of Status that is of the durable keys alone.
type DurableStatus struct {
	Replica crdt.ReplicaID
	Seen    string // the version vector
	Ready   bool   // concord.ddata.durable.ready
	Counted int    // members that majorities are counted in
	Keys    int    // concord.ddata.durable.keys
	Epoch   uint64 // as Status has it
	Trouble string

	// Disk is "working", or why changes are not acknowledged: "loading", "stalled", "full" or "failed";
	// concord.ddata.durable.working is 1 or 0. DiskError is what the store has said.
	Disk      string
	DiskError string
	Unsaved   int    // concord.ddata.durable.unsaved: bytes of changes that are not on the disk yet, an estimate
	Batches   uint64 // concord.ddata.durable.batches: written since the start
	// Rows and Bytes have been read at the start, so far; Holes of the rows could not be, and Refilling says that what
	// they held is being asked of the others. concord.ddata.durable.rows, .holes.
	Rows, Bytes int64
	Holes       int
	Refilling   bool
}

func (h *half) status() *DurableStatus {
	s := &DurableStatus{Replica: crdt.ReplicaID(h.replica), Seen: h.seen.String(), Ready: h.ready, Keys: h.keys.Len()}
	if h.roll != nil {
		s.Counted, s.Epoch, s.Trouble = h.roll.Counted, h.roll.Epoch, h.roll.Trouble
	}
	s.Disk, s.Unsaved, s.Batches, s.Holes, s.Refilling = h.disk.Phase.String(), h.disk.Unsaved, h.disk.Batches, h.disk.Holes, h.disk.Refilling
	if h.disk.Err != nil {
		s.DiskError = h.disk.Err.Error()
	}
	return s
}

// add adds what is counted of one domain.
func (s *Status) add(h *half) {
	s.Keys += h.keys.Len()
	s.Updates += h.stats.Events
	s.Applied += h.stats.Applied
	s.Repairs += h.stats.Deltas + h.stats.Bulks
	s.Bulks += h.stats.Bulks
	s.Filled += h.stats.Filled
	s.ToFill += h.stats.ToFill
	s.LogBytes += h.stats.LogBytes
	s.Diverged += h.stats.Diverged
	s.Rotten += h.stats.Rotten
	s.Mended += h.stats.Mended
	s.Malformed += h.stats.Malformed
	s.Strangers += h.stats.Strangers
	s.Waiting += h.stats.Waiting
}

// miss adds the members that are missing for one domain.
func (s *Status) miss(h *half) {
	for _, m := range h.roll.Missing() {
		if !slices.Contains(s.Missing, m) {
			s.Missing = append(s.Missing, m)
		}
	}
}

// traffic counts what was sent, by manifest.
type traffic [2][wire.ReplicatorRetract + 1]counts

type counts struct{ messages, bytes atomic.Uint64 }

func (t *traffic) count(m wire.Manifest, bytes int) {
	at := &t.of(m)[m.Plain()]
	at.messages.Add(1)
	at.bytes.Add(uint64(bytes))
}

func (t *traffic) all() map[string]Traffic {
	out := map[string]Traffic{}
	for m := wire.ReplicatorBeat; m <= wire.ReplicatorRetract; m++ {
		for _, m := range [...]wire.Manifest{m, m.OfDurable()} {
			if at := &t.of(m)[m.Plain()]; at.messages.Load() > 0 {
				out[m.String()] = Traffic{at.messages.Load(), at.bytes.Load()}
			}
		}
	}
	return out
}

func (t *traffic) of(m wire.Manifest) *[wire.ReplicatorRetract + 1]counts {
	if m.Durable() {
		return &t[1]
	}
	return &t[0]
}

// Traffic returns the sum of all that was sent.
func (s Status) Traffic() (sum Traffic) {
	for _, t := range s.Sent {
		sum.Messages += t.Messages
		sum.Bytes += t.Bytes
	}
	return sum
}
