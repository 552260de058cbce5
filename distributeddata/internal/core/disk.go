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
func (c *Core) Disk() DiskState { return c.disk.state() }

func (d *disk) state() DiskState {
	return DiskState{
		Phase: d.phase, Err: d.err, Unsaved: d.gathered + d.unwritten, Batches: d.written,
		Refilling: d.aside != nil, Holes: d.holes,
	}
}

// current is what the disk is to hold: what a replica has, and the members that it remembers.
type current struct {
	*history.History
	members *quorum.Memory
}

func (h herald) current() current { return current{h.history, &h.members.Memory} }

// unsaved reports whether the replica's state differs from the last moment.
func (d *disk) unsaved(p current) bool {
	f := &d.formed
	return !p.Keys().Same(f.keys) || !p.Seen().Equal(f.seen) || p.members.Digest() != f.members ||
		d.kept != f.kept || d.next != f.next
}

// gather adds to the estimate of what the disk will have to write.
func (d *disk) gather(now time.Time, bytes int) {
	if d.phase != NoDisk {
		d.gathered, d.events = d.gathered+bytes, d.events+1
		if d.dueAt.IsZero() {
			d.dueAt = now.Add(d.cfg.Behind)
		}
	}
}

// crowded reports whether so much waits for a batch in flight that updates must be rejected [R49].
func (d *disk) crowded() bool {
	return d.phase == DiskWorking && len(d.batches) > 0 && (d.gathered >= d.cfg.Bytes ||
		d.events >= d.cfg.Events)
}

// write forms the next moment, if it is due and all own events have been pushed, and issues the
// next batch.
func (d *disk) write(s *step, p current, pushed uint64) {
	if !d.writes() {
		return
	}
	if d.again {
		d.commitAgain(s)
	}
	if d.formDue(s.now, p) && pushed == p.Own() {
		d.form(p)
	}
	if len(d.batches) > 0 && !d.asked && !s.now.Before(d.retryAt) {
		d.number++
		d.asked, d.askedAt = true, s.now
		s.emit(d.first())
	}
}

// writes reports whether the disk accepts batches, now or later.
func (d *disk) writes() bool {
	return d.phase == DiskWorking || d.phase == DiskStalled || d.phase == DiskFull
}

// formDue reports whether the next moment must be formed now. Own events are pushed before that: a
// push leaves out atoms that were added and removed among its events [R9], so a disk must not hold
// only some of those events.
func (d *disk) formDue(now time.Time, p current) bool {
	if !d.writes() || len(d.batches) > 0 {
		return false
	}
	if !d.unsaved(p) {
		d.gathered, d.events, d.dueAt, d.hurry = 0, 0, time.Time{}, false
		return false
	}
	if d.dueAt.IsZero() { // due to neither an update nor a message
		d.dueAt = now.Add(d.cfg.Behind)
	}
	return d.cfg.Behind == 0 || d.hurry || !now.Before(d.dueAt) || d.gathered >= d.cfg.Bytes ||
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
func (d *disk) commitAgain(s *step) {
	if d.again = false; d.asked {
		s.emit(d.first())
	}
}

// committed handles the outcome of a batch, and returns the phase that the disk is in then.
func (d *disk) committed(now time.Time, ev Committed) (DiskPhase, error) {
	if !d.asked || ev.Number != d.number {
		return d.phase, d.err
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
		return DiskWorking, nil
	case errors.Is(ev.Err, store.ErrFull):
		d.retryAt = now.Add(d.cfg.Retry)
		return DiskFull, ev.Err
	}
	return DiskFailed, ev.Err
}

// late reports whether a batch takes too long.
func (d *disk) late(now time.Time, patience time.Duration) bool {
	return d.phase == DiskWorking && d.asked && now.Sub(d.askedAt) >= patience
}

// diskIs sets the phase of the disk. If the disk has stopped working, waiting calls get the error,
// and outputs that say that this replica counts are dropped [R48].
func (c cluster) diskIs(phase DiskPhase, err error, out *outlet) {
	d := c.disk
	was := d.phase
	if d.phase, d.err = phase, err; was == phase {
		return
	}
	c.waits.Stir()
	if d.ailing() {
		out.Clear()
		d.dropHeld(c.step, err)
	}
	c.emit(DiskIs{d.state()})
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// wake reports the time at which the disk needs attention.
func (d *disk) wake(patience time.Duration, earlier func(time.Time)) {
	switch {
	case d.phase == NoDisk || d.phase == DiskFailed:
		return
	case d.asked && d.phase == DiskWorking:
		earlier(d.askedAt.Add(patience))
	case !d.asked && len(d.batches) > 0:
		earlier(d.retryAt)
	case len(d.batches) == 0 && !d.dueAt.IsZero():
		earlier(d.dueAt)
	}
	earlier(d.barrier.Until())
}
