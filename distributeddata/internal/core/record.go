package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// With Config.Recorded the membership is a record in a store that replaces it by compare-and-set
// [M9]. Every change of the counted members is written there first, so any two changes are ordered,
// and a process that starts finds an existing cluster. The rules M1 to M5 still apply, since the
// store does not know which data each member holds. The store is needed only to start, to leave and
// to forget.

// chain orders a memory among those of one cluster.
type chain struct {
	epoch   uint64 // rises with each change of the record; 0: not from a record
	cluster uint64 // a random number, given when the record was created
}

// roster is what a replica knows of the record in the store.
type roster struct {
	read     bool // version is that of the record as last read or written
	version  string
	readAt   time.Time
	calling  uint64    // the call in flight; 0: none
	calls    uint64    // number of calls so far
	again    time.Time // no call before this time
	next     memory    // what the swap in flight writes
	entering bool      // whether this replica enters as a newcomer once it has its place
	trouble  string
}

// forget abandons the call in flight.
func (r *roster) forget() { r.read, r.calling, r.next = false, 0, memory{} }

// Errors of a record, and of members with a different kind of membership.
var (
	errNoRecord = errors.New(
		"its membership is not a record in a store, but that of this member is: the configurations differ")
	errRecord = errors.New(
		"its membership is a record in a store, but that of this member is not: the configurations differ")
	errOtherCluster = errors.New(
		"it belongs to another cluster: there are two stores, or the record was removed and created again")
	errRecordRemoved = errors.New("the record was removed: the next change writes it again")
)

// consulted reports whether this replica knows the record well enough to take its place, and
// otherwise requests it. While it waits for its place, it reads the record again from time to time,
// since other members may have left.
func (c *Core) consulted() bool {
	r := &c.roll.roster
	if c.cfg.Recorded && (!r.read || !c.now.Before(r.readAt.Add(2*c.cfg.BeatInterval))) {
		c.load()
	}
	return !c.cfg.Recorded || r.read && r.calling == 0
}

func (c *Core) load() {
	r := &c.roll.roster
	if r.calling == 0 && !c.now.Before(r.again) {
		r.calls++
		r.calling = r.calls
		c.emit(LoadRecord{r.calling})
	}
}

// propose makes m the memory: at once, or, with Config.Recorded, when the record has been replaced.
// In the latter case the caller must propose m again until it is the memory, since another change
// may come first.
func (c *Core) propose(m memory) {
	r := &c.roll.roster
	switch {
	case !c.cfg.Recorded:
		c.change(m)
		return
	case !r.read:
		c.load()
		return
	case r.calling != 0 || c.now.Before(r.again):
		return
	}
	next := remember(prune(slices.Clone(m.all), maxGoneRecorded))
	next.chain = chain{c.roll.epoch + 1, c.roll.cluster}
	if next.cluster == 0 {
		next.cluster = uint64(c.cfg.NewReplica())
	}
	text, err := next.text()
	if err != nil {
		c.failed(err)
		return
	}
	r.calls++
	r.calling, r.next = r.calls, next
	c.emit(SwapRecord{r.calling, r.version, text})
}

// recordSwapped handles the answer to a swap. After an error the swap may or may not have been
// carried out, or may be carried out later. The record is then read before anything else is done;
// if it contains this replica's place, the replica has it.
func (c *Core) recordSwapped(ev RecordSwapped) {
	r := &c.roll.roster
	if ev.ID != r.calling {
		return
	}
	next := r.next
	r.forget()
	c.waits.Stir()
	switch {
	case ev.Err != nil:
		c.failed(fmt.Errorf("write: %w", ev.Err))
	case !ev.Swapped:
		c.load()
	default:
		r.read, r.version, r.readAt = true, ev.Version, c.now
		c.trouble(nil)
		c.change(next)
	}
}

// recordLoaded handles the loaded record.
func (c *Core) recordLoaded(ev RecordLoaded) {
	r := &c.roll.roster
	if ev.ID != r.calling {
		return
	}
	r.forget()
	c.waits.Stir()
	if ev.Err != nil {
		c.failed(fmt.Errorf("read: %w", ev.Err))
		return
	}
	alarm, err := c.take(ev)
	if err != nil {
		c.failed(err)
		return
	}
	r.read, r.version, r.readAt = true, ev.Version, c.now
	c.trouble(alarm)
}

// take makes the loaded record the memory, unless the current memory is newer. An alarm means that
// the record is outdated or was removed, and that the next change repairs it. An error means that
// the record cannot be used.
func (c *Core) take(ev RecordLoaded) (alarm, err error) {
	if ev.Version == "" {
		if c.roll.epoch > 0 {
			alarm = fmt.Errorf("%w; epoch %d is remembered", errRecordRemoved, c.roll.epoch)
		}
		return alarm, nil
	}
	m, err := readRecord(ev.Record)
	if err != nil {
		return nil, err
	}
	if m.epoch < c.roll.epoch && m.cluster == c.roll.cluster {
		alarm = fmt.Errorf("the record went back to epoch %d from the remembered epoch %d: the store lost writes, or an "+
			"old copy was restored; the next change writes it again", m.epoch, c.roll.epoch)
	}
	if m, err = c.accept(m); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	c.recall(m)
	return alarm, nil
}

// accept returns the memory that results from hearing m. The memories of one cluster's record are
// ordered, so the later one is kept. Two memories with the same epoch, which only a store that lost
// writes can cause, are merged.
func (c *Core) accept(m memory) (memory, error) {
	switch own := c.roll.memory; {
	case !c.cfg.Recorded && m.epoch == 0:
		return own.merge(m), nil
	case !c.cfg.Recorded:
		return own, errRecord
	case m.epoch == 0 && len(m.all) > 0:
		return own, errNoRecord
	case m.epoch == 0 || m.cluster == own.cluster && m.epoch < own.epoch:
		return own, nil
	case own.epoch > 0 && m.cluster != own.cluster:
		return own, fmt.Errorf("%w: cluster %016x, epoch %d; here cluster %016x, epoch %d",
			errOtherCluster, m.cluster, m.epoch, own.cluster, own.epoch)
	case m.epoch == own.epoch && m.digest != own.digest:
		both := own.merge(m)
		both.chain = own.chain
		return both, nil
	}
	return m, nil
}

// placed takes the place that m gives this replica, if it is new: its swap has been carried out.
func (c *Core) placed(m memory) {
	if r := m.of(c.cfg.Member); c.cfg.Recorded && r.inc.replica == c.me && r.inc != c.roll.inc {
		c.roll.inc, c.roll.entering = r.inc, c.roll.roster.entering
		c.roll.takeAt = c.now.Add(2 * c.cfg.BeatInterval)
	}
}

// failed records an error of the store, which is called again after a pause.
func (c *Core) failed(err error) {
	c.roll.roster.again = c.now.Add(c.cfg.BeatInterval)
	c.trouble(err)
}

// trouble reports a problem once.
func (c *Core) trouble(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != c.roll.roster.trouble {
		c.roll.roster.trouble = text
		c.emit(Troubled{err})
	}
}

// sole reports whether the record says that only one member counts. When that member goes, no other
// can agree: the record then says that no member counts, and the data that the member held is lost,
// except for what it has handed over.
func (c *Core) sole(name string) bool {
	r := c.roll.of(name).rank
	return c.cfg.Recorded && c.roll.size == 1 && (r == in || r == going)
}

// expulsion removes a member from the record without asking any other member [M7].
type expulsion struct {
	victim string
	by     incarnation // the incarnation that was asked to do so
}

func (x *expulsion) anew() task               { return x }
func (x *expulsion) has(*peer, uint64) bool   { return false }
func (x *expulsion) ask(*Core, *group, *peer) {}
func (x *expulsion) advance(c *Core, _ *group) standing {
	s := standing{need: 1, self: 1, upTo: math.MaxUint64}
	if own := c.own(); x.by.number > 0 && (own.inc != x.by || own.rank == gone) {
		s.hopeless = true // this member has been expelled itself
		return s
	}
	if c.roll.of(x.victim).rank != gone {
		c.propose(c.roll.leave(x.victim, false))
	}
	r := c.roll.of(x.victim).rank
	s.done = r == gone || r == absent
	return s
}
