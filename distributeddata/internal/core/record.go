package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// With Config.Recorded the membership is a record in a store that replaces it by compare-and-set
// [M9]. Every change of the counted members is written there first, so any two changes are ordered,
// and a process that starts finds an existing cluster. The rules M1 to M5 still apply, since the
// store does not know which data each member holds. The store is needed only to start, to leave and
// to forget.

// roster is what a replica knows of the record in the store.
type roster struct {
	read     bool // version is that of the record as last read or written
	version  string
	readAt   time.Time
	calling  uint64        // the call in flight; 0: none
	calls    uint64        // number of calls so far
	again    time.Time     // no call before this time
	next     quorum.Memory // what the swap in flight writes
	entering bool          // whether this replica enters as a newcomer once it has its place
	trouble  string
}

// forget abandons the call in flight.
func (r *roster) forget() { r.read, r.calling, r.next = false, 0, quorum.Memory{} }

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
func (c *Core) propose(m quorum.Memory) {
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
	next := quorum.Remember(quorum.Prune(slices.Clone(m.Members()), quorum.MaxGoneRecorded))
	next.Chain = quorum.Chain{Epoch: c.roll.Epoch + 1, Cluster: c.roll.Cluster}
	if next.Cluster == 0 {
		next.Cluster = uint64(c.cfg.NewReplica())
	}
	text, err := next.Text()
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
		if c.roll.Epoch > 0 {
			alarm = fmt.Errorf("%w; epoch %d is remembered", errRecordRemoved, c.roll.Epoch)
		}
		return alarm, nil
	}
	m, err := quorum.ReadRecord(ev.Record)
	if err != nil {
		return nil, err
	}
	if m.Epoch < c.roll.Epoch && m.Cluster == c.roll.Cluster {
		alarm = fmt.Errorf("the record went back to epoch %d from the remembered epoch %d: the store lost writes, or an "+
			"old copy was restored; the next change writes it again", m.Epoch, c.roll.Epoch)
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
func (c *Core) accept(m quorum.Memory) (quorum.Memory, error) {
	switch own := c.roll.Memory; {
	case !c.cfg.Recorded && m.Epoch == 0:
		return own.Merge(m), nil
	case !c.cfg.Recorded:
		return own, errRecord
	case m.Epoch == 0 && len(m.Members()) > 0:
		return own, errNoRecord
	case m.Epoch == 0 || m.Cluster == own.Cluster && m.Epoch < own.Epoch:
		return own, nil
	case own.Epoch > 0 && m.Cluster != own.Cluster:
		return own, fmt.Errorf("%w: cluster %016x, epoch %d; here cluster %016x, epoch %d",
			errOtherCluster, m.Cluster, m.Epoch, own.Cluster, own.Epoch)
	case m.Epoch == own.Epoch && m.Digest() != own.Digest():
		both := own.Merge(m)
		both.Chain = own.Chain
		return both, nil
	}
	return m, nil
}

// placed takes the place that m gives this replica, if it is new: its swap has been carried out.
func (c *Core) placed(m quorum.Memory) {
	if r := m.Of(c.cfg.Member); c.cfg.Recorded && r.Inc.Replica == c.me && r.Inc != c.roll.inc {
		c.roll.inc, c.roll.entering = r.Inc, c.roll.roster.entering
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
	return c.cfg.Recorded && c.roll.Counted() == 1 && c.roll.Of(name).Counts()
}

// expulsion removes a member from the record without asking any other member [M7].
type expulsion struct {
	victim string
	by     quorum.Incarnation // the incarnation that was asked to do so
}

func (x *expulsion) anew() task               { return x }
func (x *expulsion) has(*peer, uint64) bool   { return false }
func (x *expulsion) ask(*Core, *group, *peer) {}
func (x *expulsion) advance(c *Core, _ *group) standing {
	s := standing{need: 1, self: 1, upTo: math.MaxUint64}
	if own := c.own(); x.by.Number > 0 && (own.Inc != x.by || own.Rank == quorum.Gone) {
		s.hopeless = true // this member has been expelled itself
		return s
	}
	if c.roll.Of(x.victim).Rank != quorum.Gone {
		c.propose(c.roll.Leave(x.victim, false))
	}
	s.done = c.roll.Of(x.victim).Outside()
	return s
}
