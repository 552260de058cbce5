package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/barrier"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
)

// disk is what a replica knows of its disk. A batch is the difference between the states of the
// replica at two moments, so the disk always holds the complete state after some step [R47]. States
// are immutable: remembering a moment costs nothing, and steps do not deal with rows.
type disk struct {
	cfg     *DiskConfig
	phase   DiskPhase
	err     error
	formed  moment      // what the disk will hold after the queued batches
	batches []diskBatch // to be written, in order; the first may be in flight
	number  uint64      // of the last Commit
	asked   bool        // that Commit is in flight
	askedAt time.Time
	retryAt time.Time // earliest time for another attempt at the first batch
	dueAt   time.Time // write-behind: when the next moment must be formed
	hurry   bool      // form it at once: a flush waits
	again   bool      // the first batch must be issued once more
	written uint64
	kept    bool // the disk holds everything that this member ever acknowledged [R52]

	gathered  int // estimated bytes of changes since the last moment
	events    int // number of own updates and messages since then
	unwritten int // estimated bytes in the batches

	barrier barrier.Barrier[Effect] // outputs that wait for the disk

	// keptAs are this member's incarnations that the disk knew when it was loaded: the last that it
	// saved, and the one that was to follow.
	keptAs [2]quorum.Incarnation
	next   quorum.Incarnation // this replica's, as announced to the disk
	nextAt barrier.Moment     // the moment that contains it

	aside   *aside // of a disk with a hole [R51]
	holes   int
	pending []Event // events that arrived before the rows were loaded
}

// moment is the state of a replica after a step.
type moment struct {
	live, aside uint64 // generations
	keys        history.Keys
	seen        causal.Vector
	sum, marks  history.Sum
	members     uint64 // digest
	batches     uint64
	kept        bool
	next        quorum.Incarnation
}

// diskBatch is one of the batches in which the difference between two moments is written.
type diskBatch struct {
	ops   []store.Op
	saves bool // the moment is saved when this batch has been written
	size  int
}

// gates reports whether outputs wait for the disk.
func (d *disk) gates() bool { return d.phase == DiskWorking && d.cfg.Behind == 0 }

// sound reports whether this replica may count: it has no disk, or one that works.
func (d *disk) sound() bool { return d.phase == NoDisk || d.phase == DiskWorking }

// ailing reports whether writes are answered with an error.
func (d *disk) ailing() bool {
	return d.phase == DiskStalled || d.phase == DiskFull || d.phase == DiskFailed
}

// Disk returns the state of the disk.
func (c *Core) Disk() DiskState {
	d := &c.disk
	return DiskState{
		Phase: d.phase, Err: d.err, Unsaved: d.gathered + d.unwritten, Batches: d.written,
		Refilling: d.aside != nil, Holes: d.holes,
	}
}

// unsaved reports whether the replica's state differs from the last moment.
func (c *Core) unsaved() bool {
	f := &c.disk.formed
	return !c.Keys().Same(f.keys) || !c.Seen().Equal(f.seen) || c.roll.Digest() != f.members ||
		c.disk.kept != f.kept || c.disk.next != f.next
}

// gather adds to the estimate of what the disk will have to write.
func (c *Core) gather(bytes int) {
	if d := &c.disk; d.phase != NoDisk {
		d.gathered, d.events = d.gathered+bytes, d.events+1
		if d.dueAt.IsZero() {
			d.dueAt = c.now.Add(d.cfg.Behind)
		}
	}
}

// crowded reports whether so much waits for a batch in flight that updates must be rejected [R49].
func (d *disk) crowded() bool {
	return d.phase == DiskWorking && len(d.batches) > 0 && (d.gathered >= d.cfg.Bytes ||
		d.events >= d.cfg.Events)
}

// write forms the next moment, if it is due, and issues the next batch.
func (c *Core) write() {
	d := &c.disk
	if !d.writes() {
		return
	}
	if d.again {
		c.commitAgain()
	}
	if c.formDue() && c.outbox.Pushed() == c.history.Own() {
		c.form()
	}
	if len(d.batches) > 0 && !d.asked && !c.now.Before(d.retryAt) {
		d.number++
		d.asked, d.askedAt = true, c.now
		c.emit(d.first())
	}
}

// writes reports whether the disk accepts batches, now or later.
func (d *disk) writes() bool {
	return d.phase == DiskWorking || d.phase == DiskStalled || d.phase == DiskFull
}

// formDue reports whether the next moment must be formed now. Own events are pushed before that: a
// push leaves out atoms that were added and removed among its events [R9], so a disk must not hold
// only some of those events.
func (c *Core) formDue() bool {
	d := &c.disk
	if !d.writes() || len(d.batches) > 0 {
		return false
	}
	if !c.unsaved() {
		d.gathered, d.events, d.dueAt, d.hurry = 0, 0, time.Time{}, false
		return false
	}
	if d.dueAt.IsZero() { // due to neither an update nor a message
		d.dueAt = c.now.Add(d.cfg.Behind)
	}
	return d.cfg.Behind == 0 || d.hurry || !c.now.Before(d.dueAt) || d.gathered >= d.cfg.Bytes ||
		d.events >= d.cfg.Events
}

// first returns the Commit of the first batch.
func (d *disk) first() Commit {
	b := &store.Batch{}
	for _, o := range d.batches[0].ops {
		if o.Delete {
			b.Delete(o.Key)
		} else {
			b.Put(o.Key, o.Value)
		}
	}
	return Commit{Number: d.number, Batch: b}
}

// commitAgain issues the batch in flight once more, since a panic may have kept it from being
// issued.
func (c *Core) commitAgain() {
	if c.disk.again = false; c.disk.asked {
		c.emit(c.disk.first())
	}
}

// committed handles the outcome of a batch.
func (c *Core) committed(ev Committed) {
	d := &c.disk
	if !d.asked || ev.Number != d.number {
		return
	}
	d.asked = false
	switch {
	case ev.Err == nil:
		d.written++
		d.unwritten -= d.batches[0].size
		if d.batches[0].saves {
			d.barrier.Save()
		}
		d.batches = d.batches[1:]
		if d.phase != DiskWorking {
			c.diskIs(DiskWorking, nil)
		}
	case errors.Is(ev.Err, store.ErrFull):
		d.retryAt = c.now.Add(d.cfg.Retry)
		c.diskIs(DiskFull, ev.Err)
	default:
		c.diskIs(DiskFailed, ev.Err)
	}
}

// watchDisk detects a batch that takes too long.
func (c *Core) watchDisk() {
	if d := &c.disk; d.phase == DiskWorking && d.asked && c.now.Sub(d.askedAt) >= c.cfg.Patience {
		c.diskIs(DiskStalled, ErrDiskSlow)
	}
}

// diskIs sets the phase of the disk. If the disk has stopped working, waiting calls get the error,
// and outputs that say that this replica counts are dropped [R48].
func (c *Core) diskIs(phase DiskPhase, err error) {
	d := &c.disk
	was := d.phase
	if d.phase, d.err = phase, err; was == phase {
		return
	}
	c.waits.Stir()
	if d.ailing() {
		c.out.Clear()
		c.letGo(err)
	}
	c.emit(DiskIs{c.Disk()})
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// diskWake reports the time at which the disk needs attention.
func (c *Core) diskWake(earlier func(time.Time)) {
	d := &c.disk
	switch {
	case d.phase == NoDisk || d.phase == DiskFailed:
		return
	case d.asked && d.phase == DiskWorking:
		earlier(d.askedAt.Add(c.cfg.Patience))
	case !d.asked && len(d.batches) > 0:
		earlier(d.retryAt)
	case len(d.batches) == 0 && !d.dueAt.IsZero():
		earlier(d.dueAt)
	}
	earlier(d.barrier.Until())
}
