package core

import (
	"fmt"
	"math"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// With Config.Recorded the membership is a record in a store that replaces it by compare-and-set
// [M9]. Every change of the counted members is written there first, so any two changes are ordered,
// and a process that starts finds an existing cluster. The rules M1 to M5 still apply, since the
// store does not know which data each member holds. The store is needed only to start, to leave and
// to forget.

// roster is what a replica knows of the record in the store, and what it asks of the store: at most
// one call is in flight.
type roster struct {
	pause    time.Duration // after an error
	read     bool          // version is that of the record as last read or written
	version  string
	readAt   time.Time
	calling  uint64        // the call in flight; 0: none
	calls    uint64        // number of calls so far
	again    time.Time     // no call before this time
	next     quorum.Memory // what the swap in flight writes
	entering bool          // whether this replica enters as a new member once it has its place
	trouble  string
}

// forget abandons the call in flight.
func (r *roster) forget() { r.read, r.calling, r.next = false, 0, quorum.Memory{} }

// call begins a call, unless one is in flight or the last one has just failed.
func (r *roster) call(now time.Time) bool {
	if r.calling != 0 || now.Before(r.again) {
		return false
	}
	r.calls++
	r.calling = r.calls
	return true
}

// load requests the record.
func (r *roster) load(now time.Time) Effect {
	if !r.call(now) {
		return nil
	}
	return LoadRecord{r.calling}
}

// consulted reports whether the record is known well enough to take a place, and otherwise requests
// it. A replica that waits for its place reads the record again from time to time, since other
// members may have left.
func (r *roster) consulted(now time.Time) (known bool, ask Effect) {
	if !r.read || !now.Before(r.readAt.Add(2*r.pause)) {
		ask = r.load(now)
	}
	return r.read && r.calling == 0, ask
}

// swap requests that the record becomes that of m.
func (r *roster) swap(now time.Time, s quorum.Set, m quorum.Memory, fresh func() uint64) Effect {
	switch {
	case !r.read:
		return r.load(now)
	case r.calling != 0 || now.Before(r.again):
		return nil
	}
	next, text, err := s.NextRecord(m, fresh)
	if err != nil {
		return r.failed(now, err)
	}
	r.call(now)
	r.next = next
	return SwapRecord{r.calling, r.version, text}
}

// swapped handles the answer to a swap, and returns the memory that the record now holds. After an
// error the swap may or may not have been carried out, or may be carried out later. The record is
// then read before anything else is done.
func (r *roster) swapped(now time.Time, ev RecordSwapped) (m quorum.Memory, done bool, e Effect) {
	m = r.next
	r.forget()
	switch {
	case ev.Err != nil:
		return m, false, r.failed(now, fmt.Errorf("write: %w", ev.Err))
	case !ev.Swapped:
		return m, false, r.load(now)
	}
	return m, true, r.has(now, ev.Version, nil)
}

// has records the version of the record, and what is wrong with it.
func (r *roster) has(now time.Time, version string, alarm error) Effect {
	r.read, r.version, r.readAt = true, version, now
	return r.troubled(alarm)
}

// failed records an error of the store, which is called again after a pause.
func (r *roster) failed(now time.Time, err error) Effect {
	r.again = now.Add(r.pause)
	return r.troubled(err)
}

// troubled reports a problem once.
func (r *roster) troubled(err error) Effect {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == r.trouble {
		return nil
	}
	r.trouble = text
	return Troubled{err}
}

// propose makes m the memory: at once, or, with Config.Recorded, when the record has been replaced.
// In the latter case the caller must propose m again until it is the memory, since another change
// may come first.
func (c cluster) propose(m quorum.Memory) {
	if !c.cfg.Recorded {
		c.change(m)
		return
	}
	c.emit(c.members.roster.swap(c.now, c.members.Set, m, func() uint64 {
		return uint64(c.cfg.NewReplica())
	}))
}

// recordSwapped handles the answer to a swap. If the record contains this replica's place, the
// replica has it.
func (c cluster) recordSwapped(ev RecordSwapped) {
	if ev.ID != c.members.roster.calling {
		return
	}
	c.waits.Stir()
	m, done, e := c.members.roster.swapped(c.now, ev)
	c.emit(e)
	if done {
		c.change(m)
	}
}

// recordLoaded makes the loaded record the memory, unless the current memory is newer.
func (c cluster) recordLoaded(ev RecordLoaded) {
	r := &c.members.roster
	if ev.ID != r.calling {
		return
	}
	r.forget()
	c.waits.Stir()
	if ev.Err != nil {
		c.emit(r.failed(c.now, fmt.Errorf("read: %w", ev.Err)))
		return
	}
	m, alarm, err := c.members.HearRecord(ev.Version, ev.Record)
	if err != nil {
		c.emit(r.failed(c.now, err))
		return
	}
	c.recall(m)
	c.emit(r.has(c.now, ev.Version, alarm))
}

// expulsion removes a member from the record without asking any other member [M7].
type expulsion struct {
	victim string
	by     quorum.Incarnation // the incarnation that was asked to do so
}

func (x *expulsion) anew() task               { return x }
func (x *expulsion) has(*peer, uint64) bool   { return false }
func (x *expulsion) ask(calls, *group, *peer) {}
func (x *expulsion) advance(c calls, _ *group) standing {
	s := standing{need: 1, self: 1, upTo: math.MaxUint64}
	if own := c.members.Own(); x.by.Number > 0 && (own.Inc != x.by || own.Rank == quorum.Gone) {
		s.hopeless = true // this member has been expelled itself
		return s
	}
	if c.members.Of(x.victim).Rank != quorum.Gone {
		c.propose(c.members.Leave(x.victim, false))
	}
	s.done = c.members.Of(x.victim).Outside()
	return s
}
