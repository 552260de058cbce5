package distributeddata

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/wire"
)

// Status describes the condition of a replica, for people and dashboards. It holds no user data.
// Its fields are also metrics, under the names given; counters start with the replicator.
type Status struct {
	Replica crdt.ReplicaID
	Address string // of this member; attribute "address" of every metric, beside "replicator"
	Seen    string // the version vector
	Ready   bool   // concord.ddata.ready, 0 or 1
	Members int    // concord.ddata.members: replicas in view, this one included
	Counted int    // concord.ddata.counted: members that majorities are counted over, seen or not
	// Missing lists the counted members that are not in view, by name. If a member was last seen at
	// an address that differs from its name, the address is added. concord.ddata.missing is their
	// number.
	Missing []string
	// Epoch is the number of changes of the membership record that this member knows of. Trouble
	// says what is wrong with the record; it is empty if no problem is known. Both are zero without
	// Config.Membership.
	Epoch   uint64
	Trouble string
	// OtherDurable lists the addresses of members whose Config.Durable differs from this member's.
	// It should be empty.
	OtherDurable []string // concord.ddata.other_durable is their number
	// OtherExpiry lists the addresses of members whose Config.Expiry differs from this member's. It
	// should be empty.
	OtherExpiry []string // concord.ddata.other_expiry is their number
	// Durable describes the durable keys alone; it is nil without Config.Durable. The other fields
	// cover both kinds of keys: counters are sums, Ready and NotReady hold if they do for both, and
	// Missing lists the members missing for either. Replica, Seen, Counted, Epoch and Trouble are
	// those of the volatile keys. With "*" no key is volatile, and all fields are those of the
	// durable keys.
	Durable *DurableStatus
	// NotReady says why the replica is not ready. It is empty if the replica is ready or need not
	// be.
	NotReady string

	Keys int // concord.ddata.keys: entries, including those that hold only bookkeeping

	// Expired counts the entries that this member has deleted because they had not been used for
	// their time to live. Touches counts the uses it has announced to other members that were not
	// part of an update. See Config.Expiry.
	Expired uint64 // concord.ddata.expired
	Touches uint64 // concord.ddata.touches

	// Updates counts updates made here; consecutive updates without a waiter count as one.
	// concord.ddata.updates.
	Updates uint64
	Applied uint64 // concord.ddata.applied: made by other members and applied here
	Repairs uint64 // concord.ddata.repairs: answers to requests for missed events
	Bulks   uint64 // concord.ddata.bulks: repairs with a whole state

	// Filled and ToFill are the progress of an incoming answer, in keys or events; both are 0 if
	// there is none.
	Filled, ToFill uint64 // concord.ddata.filled, concord.ddata.to_fill

	LogBytes int // concord.ddata.log.bytes: kept for members that may have missed events
	// Lag maps each member, by address, to the number of updates that this replica has seen and
	// that member is not known to have seen. The member with the largest lag determines how much of
	// the log is kept. concord.ddata.lag, by member.
	Lag map[string]uint64

	// Diverged counts how often another replica with an equal vector was found to hold a different
	// state. Corrupted counts entries whose memory changed without a write. Mended counts how often
	// this replica was outvoted and took another's state. All three should always be 0: alert on
	// any other value.
	Diverged  uint64 // concord.ddata.diverged
	Corrupted uint64 // concord.ddata.corrupted
	Mended    uint64 // concord.ddata.mended

	Malformed uint64 // concord.ddata.malformed: messages of other members that could not be decoded
	Strangers uint64 // concord.ddata.strangers: from outside the view or of earlier incarnations
	Waiting   uint64 // concord.ddata.waiting: updates that arrived before their causes

	// Faults counts functions of the application that panicked or called runtime.Goexit on the
	// replicator's goroutine: Adapt, codecs run for subscribers, and processes that receive a
	// response. concord.ddata.faults.
	Faults uint64
	// Panics counts how often a bug of this library interrupted the replicator, which then resumes
	// with the data it held. It should always be 0: alert on any other value. concord.ddata.panics.
	Panics uint64

	// NearLimits names the limits of Config of which more than half was used within the last
	// minute. concord.ddata.near_limit is 1 or 0, by setting.
	NearLimits []string

	// Sent counts the traffic to other members, by kind; concord.ddata.sent.messages and .bytes, by
	// kind.
	Sent map[string]Traffic
}

// Traffic counts messages and the bytes in them, without envelopes and framing.
type Traffic struct{ Messages, Bytes uint64 }

// Status returns the condition of the replica; it is zero before the replica runs. While the member
// rejoins it is the last one, with Ready false. Counters continue in the next incarnation.
func (r *Replicator) Status() Status {
	p := r.state()
	if p == nil {
		return Status{}
	}
	s := Status{
		Replica: crdt.ReplicaID(p.main().replica), Ready: p.allReady(), Members: p.members,
		Seen: p.main().seen.String(), OtherDurable: p.others, OtherExpiry: p.expiry,
		Faults: r.faults.count.Load(), Panics: r.panics.Load(), Lag: map[string]uint64{},
		Sent:    r.traffic.all(),
		Expired: r.expired.Load(), Touches: r.touches.Load(),
		NearLimits: r.near.of(time.Now()),
	}
	if quorum := p.main().quorum; quorum != nil {
		s.Counted, s.Epoch, s.Trouble = quorum.Counted, quorum.Epoch, quorum.Trouble
	}
	if d := p.durable; d != nil {
		s.Durable = d.status()
		s.Durable.Rows, s.Durable.Bytes = r.disk.rows.Load(), r.disk.bytes.Load()
	}
	for h := range p.domainViews() {
		s.add(h)
		if h == p.main() || !p.durableKeys.all() {
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

// DurableStatus is the part of Status that describes the durable keys alone.
type DurableStatus struct {
	Replica crdt.ReplicaID
	Seen    string // the version vector
	Ready   bool   // concord.ddata.durable.ready
	Counted int    // number of members that majorities are counted over
	Keys    int    // concord.ddata.durable.keys
	Epoch   uint64 // as in Status
	Trouble string

	// Disk is "working", or the reason why changes are not acknowledged: "loading", "stalled",
	// "full" or "failed"; concord.ddata.durable.working is 1 or 0. DiskError is the store's error.
	Disk      string
	DiskError string
	// Unsaved estimates the bytes of changes that are not on the disk yet;
	// concord.ddata.durable.unsaved.
	Unsaved int
	Batches uint64 // concord.ddata.durable.batches: written since the start
	// Rows and Bytes count what has been read during the start so far. Holes counts the rows that
	// could not be read. Refilling says that their contents are being requested from other members.
	// concord.ddata.durable.rows, .holes.
	Rows, Bytes int64
	Holes       int
	Refilling   bool
}

func (h *domainView) status() *DurableStatus {
	s := &DurableStatus{Replica: crdt.ReplicaID(h.replica), Seen: h.seen.String(), Ready: h.ready,
		Keys: h.keys.Len()}
	if h.quorum != nil {
		s.Counted, s.Epoch, s.Trouble = h.quorum.Counted, h.quorum.Epoch, h.quorum.Trouble
	}
	s.Disk, s.Unsaved, s.Batches, s.Holes, s.Refilling = h.disk.Phase.String(), h.disk.Unsaved,
		h.disk.Batches, h.disk.Holes, h.disk.Refilling
	if h.disk.Err != nil {
		s.DiskError = h.disk.Err.Error()
	}
	return s
}

// add adds the counters of one domain.
func (s *Status) add(h *domainView) {
	s.Keys += h.keys.Len()
	s.Updates += h.stats.Events
	s.Applied += h.stats.Applied
	s.Repairs += h.stats.Deltas + h.stats.Bulks
	s.Bulks += h.stats.Bulks
	s.Filled += h.stats.Filled
	s.ToFill += h.stats.ToFill
	s.LogBytes += h.stats.LogBytes
	s.Diverged += h.stats.Diverged
	s.Corrupted += h.stats.Corrupted
	s.Mended += h.stats.Mended
	s.Malformed += h.stats.Malformed
	s.Strangers += h.stats.Strangers
	s.Waiting += h.stats.Waiting
}

// miss adds the members that one domain misses.
func (s *Status) miss(h *domainView) {
	for _, m := range h.quorum.Missing() {
		if !slices.Contains(s.Missing, m) {
			s.Missing = append(s.Missing, m)
		}
	}
}

// traffic counts sent messages, by manifest.
type traffic [2][wire.ReplicatorEnd]counts

type counts struct{ messages, bytes atomic.Uint64 }

func (t *traffic) count(m wire.Manifest, bytes int) {
	at := &t.of(m)[m.Plain()]
	at.messages.Add(1)
	at.bytes.Add(uint64(bytes))
}

func (t *traffic) all() map[string]Traffic {
	out := map[string]Traffic{}
	for m := wire.ReplicatorBeat; m < wire.ReplicatorEnd; m++ {
		for _, m := range [...]wire.Manifest{m, m.OfDurable()} {
			if at := &t.of(m)[m.Plain()]; at.messages.Load() > 0 {
				out[m.String()] = Traffic{at.messages.Load(), at.bytes.Load()}
			}
		}
	}
	return out
}

func (t *traffic) of(m wire.Manifest) *[wire.ReplicatorEnd]counts {
	if m.Durable() {
		return &t[1]
	}
	return &t[0]
}

// Traffic returns the sum of all sent traffic.
func (s Status) Traffic() (sum Traffic) {
	for _, t := range s.Sent {
		sum.Messages += t.Messages
		sum.Bytes += t.Bytes
	}
	return sum
}
