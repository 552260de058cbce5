package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Where Config.Recorded says so, the membership is a record in a store that replaces it by
// compare-and-set [M9]. Whatever changes who is counted is written there first, so of two changes
// one comes after the other, and a process that starts finds the cluster that is there. The rules
// M1 to M5 stay: the store does not know who holds what. It is needed to start, to leave and to
// forget, and for nothing else.

// chain is the place of a memory among those of one cluster.
type chain struct {
	epoch   uint64 // rises with each change of the record; 0: no record says this
	cluster uint64 // a random number, given when the record was created
}

// roster is what a replica knows of the record in the store.
type roster struct {
	read     bool // version is that of the record as it was read or written last
	version  string
	readAt   time.Time
	calling  uint64    // the call that is under way; 0: none
	calls    uint64    // so far
	again    time.Time // no call before
	next     memory    // what the swap under way writes
	entering bool      // what this replica is once it has its place
	trouble  string
}

// forget gives up what is under way.
func (r *roster) forget() { r.read, r.calling, r.next = false, 0, memory{} }

// Errors of a record, and of members that have another one.
var (
	errNoRecord      = errors.New("its membership is no record in a store, as that of this one is: the configurations differ")
	errRecord        = errors.New("its membership is a record in a store, as that of this one is not: the configurations differ")
	errOtherCluster  = errors.New("it is of another cluster: two stores, or a record that was removed and written anew")
	errRecordRemoved = errors.New("the record was removed: the next change writes it again")
)

// consulted reports whether this replica knows the record well enough to take its place, and asks
// for it if not. While it waits for its place it reads the record again now and then: others may
// have left.
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

// propose makes m what is remembered: at once, or, where the membership is a record, when that has
// been replaced. Then the caller has to propose it again until it is, since another change may come
// first.
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

// recordSwapped takes the answer to a swap. After an error it may have been carried out, or may be
// yet: the record is read before anything else is done, and if this replica has its place there, it
// has it.
func (c *Core) recordSwapped(ev RecordSwapped) {
	r := &c.roll.roster
	if ev.ID != r.calling {
		return
	}
	next := r.next
	r.forget()
	c.stirred = true
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

// recordLoaded takes the record as it is.
func (c *Core) recordLoaded(ev RecordLoaded) {
	r := &c.roll.roster
	if ev.ID != r.calling {
		return
	}
	r.forget()
	c.stirred = true
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

// take makes what the record says what is remembered, unless more is remembered. With an alarm the
// record is worth less than that, but the next change sets it right; with an error it cannot be
// gone by.
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
		alarm = fmt.Errorf("the record went back to epoch %d from %d, which is remembered: the store lost writes, or an "+
			"old copy was restored; the next change writes it again", m.epoch, c.roll.epoch)
	}
	if m, err = c.accept(m); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	c.recall(m)
	return alarm, nil
}

// accept returns what is to be remembered after hearing of another memory. Those of one cluster's
// record follow each other, so the later one stands; two under one epoch, which only a store that
// lost writes can lead to, are merged.
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
		return own, fmt.Errorf("%w: cluster %016x, epoch %d; here cluster %016x, epoch %d", errOtherCluster, m.cluster, m.epoch,
			own.cluster, own.epoch)
	case m.epoch == own.epoch && m.digest != own.digest:
		both := own.merge(m)
		both.chain = own.chain
		return both, nil
	}
	return m, nil
}

// placed takes the place that m gives this replica, if that is news: its swap has been carried out.
func (c *Core) placed(m memory) {
	if r := m.of(c.cfg.Member); c.cfg.Recorded && r.inc.replica == c.me && r.inc != c.roll.inc {
		c.roll.inc, c.roll.entering = r.inc, c.roll.roster.entering
		c.roll.takeAt = c.now.Add(2 * c.cfg.BeatInterval)
	}
}

// failed notes that the store did not answer as it should: it is asked again after a while.
func (c *Core) failed(err error) {
	c.roll.roster.again = c.now.Add(c.cfg.BeatInterval)
	c.trouble(err)
}

// trouble tells what is wrong, once.
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

// sole reports whether the record says that nobody but one member counts. When that goes, there is
// no one to agree: the record says that nobody counts, and what the member held is gone with it,
// but for what it has handed over.
func (c *Core) sole(name string) bool {
	r := c.roll.of(name).rank
	return c.cfg.Recorded && c.roll.size == 1 && (r == in || r == going)
}

// expulsion takes a member out of the record without asking anybody [M7].
type expulsion struct {
	victim string
	by     incarnation // that was told to
}

func (x *expulsion) anew() task                   { return x }
func (x *expulsion) has(*peer, uint64) bool       { return false }
func (x *expulsion) ask(*Core, *operation, *peer) {}
func (x *expulsion) advance(c *Core, _ *operation) standing {
	s := standing{need: 1, self: 1, upTo: math.MaxUint64}
	if own := c.own(); x.by.number > 0 && (own.inc != x.by || own.rank == gone) {
		s.hopeless = true // it has been thrown out itself
		return s
	}
	if c.roll.of(x.victim).rank != gone {
		c.propose(c.roll.leave(x.victim))
	}
	r := c.roll.of(x.victim).rank
	s.done = r == gone || r == absent
	return s
}
