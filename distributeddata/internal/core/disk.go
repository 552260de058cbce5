package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
)

// disk is what a replica knows of its disk. Its batches are the differences between what the replica holds at one
// moment and at a later one, so that the disk always holds what the replica held after some step, whole [R61]. What is
// held is immutable: to remember a moment costs nothing, and steps know nothing of rows.
type disk struct {
	cfg     *DiskConfig
	phase   DiskPhase
	err     error
	formed  moment      // what the disk will hold with the batches at hand
	moments uint64      // how many have been formed
	saved   uint64      // of these, how many the disk holds
	batches []diskBatch // to be written, in order; the first may be under way
	number  uint64      // of the last Commit
	asked   bool        // it is under way
	askedAt time.Time
	retryAt time.Time // not before: the first of the batches is tried again
	dueAt   time.Time // write-behind: when the next moment is to be formed
	hurry   bool      // or at once: a flush waits
	again   bool      // the first is to be asked for once more
	written uint64
	kept    bool // the disk holds all that this member ever acknowledged [R65]

	gathered  int // estimated bytes of what came since the last moment
	events    int // own updates and messages that this was
	unwritten int // estimated bytes in the batches

	held      []heldBack // outputs that wait, in order
	heldBytes int
	until     time.Time // the first deadline of the calls among them

	keptAs incarnation // that of this member, as the disk knows it

	aside   *aside // of a disk with a hole [R64]
	holes   int
	pending []Event // what came before the rows were loaded
}

// moment is what a replica held after a step.
type moment struct {
	live, aside uint64 // generations
	keys        Keys
	seen        causal.Vector
	sum, marks  Sum
	members     uint64 // digest
	batches     uint64
	kept        bool
}

// diskBatch is one of the batches that the difference between two moments is written in.
type diskBatch struct {
	ops   []store.Op
	saves bool // with this one the moment is saved
	size  int
}

// gates reports whether outputs wait for the disk.
func (d *disk) gates() bool { return d.phase == DiskWorking && d.cfg.Behind == 0 }

// sound reports whether this replica's word may count: it has no disk, or one that works.
func (d *disk) sound() bool { return d.phase == NoDisk || d.phase == DiskWorking }

// ailing reports whether writes are answered with an error.
func (d *disk) ailing() bool {
	return d.phase == DiskStalled || d.phase == DiskFull || d.phase == DiskFailed
}

// Disk returns how the disk stands.
func (c *Core) Disk() DiskState {
	d := &c.disk
	return DiskState{
		Phase: d.phase, Err: d.err, Unsaved: d.gathered + d.unwritten, Batches: d.written, Refilling: d.aside != nil, Holes: d.holes,
	}
}

// unsaved reports whether the replica holds something else than at the last moment.
func (c *Core) unsaved() bool {
	f := &c.disk.formed
	return !c.keys.Same(f.keys) || !c.seen.Equal(f.seen) || c.roll.digest != f.members || c.disk.kept != f.kept
}

// gather notes how much has come that the disk will have to take.
func (c *Core) gather(bytes int) {
	if d := &c.disk; d.phase != NoDisk {
		d.gathered, d.events = d.gathered+bytes, d.events+1
		if d.dueAt.IsZero() {
			d.dueAt = c.now.Add(d.cfg.Behind)
		}
	}
}

// crowded reports whether so much waits for a batch under way that no more may be begun [R63].
func (d *disk) crowded() bool {
	return d.phase == DiskWorking && len(d.batches) > 0 && (d.gathered >= d.cfg.Bytes || d.events >= d.cfg.Events)
}

// write forms the next moment, if it is time, and asks for the next batch.
func (c *Core) write() {
	d := &c.disk
	if !d.writes() {
		return
	}
	if d.again {
		c.commitAgain()
	}
	if c.formDue() && c.pushed == c.seen.Get(c.me) {
		c.form()
	}
	if len(d.batches) > 0 && !d.asked && !c.now.Before(d.retryAt) {
		d.number++
		d.asked, d.askedAt = true, c.now
		c.emit(d.first())
	}
}

// writes reports whether the disk takes batches, or will again.
func (d *disk) writes() bool {
	return d.phase == DiskWorking || d.phase == DiskStalled || d.phase == DiskFull
}

// formDue reports whether the next moment is to be formed now. Own events are pushed before: a push leaves out what came
// and went among its events [R7b], and what a disk has some of alone would come back with it.
func (c *Core) formDue() bool {
	d := &c.disk
	if !d.writes() || len(d.batches) > 0 || c.revoked != nil {
		return false
	}
	if !c.unsaved() {
		d.gathered, d.events, d.dueAt, d.hurry = 0, 0, time.Time{}, false
		return false
	}
	if d.dueAt.IsZero() { // not by an update or a message
		d.dueAt = c.now.Add(d.cfg.Behind)
	}
	return d.cfg.Behind == 0 || d.hurry || !c.now.Before(d.dueAt) || d.gathered >= d.cfg.Bytes || d.events >= d.cfg.Events
}

// first is the first of the batches.
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

// commitAgain asks once more for the batch that is under way: a panic may have kept it from being asked for.
func (c *Core) commitAgain() {
	if c.disk.again = false; c.disk.asked {
		c.emit(c.disk.first())
	}
}

// committed takes the outcome of a batch.
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
			d.saved++
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

// watchDisk notices a batch that takes too long.
func (c *Core) watchDisk() {
	if d := &c.disk; d.phase == DiskWorking && d.asked && c.now.Sub(d.askedAt) >= c.cfg.Patience {
		c.diskIs(DiskStalled, ErrDiskSlow)
	}
}

// diskIs notes how the disk is. What waited for it is answered with the error; what says that this replica counts is
// not sent [R62].
func (c *Core) diskIs(phase DiskPhase, err error) {
	d := &c.disk
	was := d.phase
	if d.phase, d.err = phase, err; was == phase {
		return
	}
	c.stirred = true
	if d.ailing() {
		clear(c.outgoing)
		c.letGo(err)
	}
	c.emit(DiskIs{c.Disk()})
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// diskWake is when the disk has to be looked at.
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
	earlier(d.until)
}
