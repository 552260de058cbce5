package membership

import "sync/atomic"

// Stats counts the hellos of a service since it was attached.
type Stats struct {
	Sent, Received uint64
	// The reasons for which received hellos were dropped:
	Malformed uint64 // cannot be decoded, or contains impossible claims
	Foreign   uint64 // of another cluster or version
	Stranger  uint64 // of a member that is not listed here
	Stale     uint64 // of, or for, a former incarnation
	Duplicate uint64 // received before, or overtaken by a newer one
	Own       uint64 // claims to come from this member

	Asked        uint64 // hellos to addresses of lost members
	Evidence     uint64 // running members in conflict with this one, joins in progress included
	Splits       uint64 // conflicts that lasted longer than the patience
	PermitsGiven uint64 // members that may step down for this one
	PermitsTaken uint64 // 1 after this member stepped down
}

type counters struct {
	sent, received atomic.Uint64
	dropped        [numberOfReasons]atomic.Uint64
	asked          atomic.Uint64
	noted          [numberOfNotices]atomic.Uint64
}

func (c *counters) stats() Stats {
	return Stats{
		Sent: c.sent.Load(), Received: c.received.Load(),
		Malformed: c.dropped[whyMalformed].Load(),
		Foreign:   c.dropped[whyForeign].Load(),
		Stranger:  c.dropped[whyStranger].Load(),
		Stale:     c.dropped[whyStale].Load(),
		Duplicate: c.dropped[whyDuplicate].Load(),
		Own:       c.dropped[whyOwn].Load(),

		Asked:        c.asked.Load(),
		Evidence:     c.noted[inConflict].Load(),
		Splits:       c.noted[split].Load(),
		PermitsGiven: c.noted[permitGiven].Load(),
		PermitsTaken: c.noted[permitTaken].Load(),
	}
}
