package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/wire"
)

// An output may reveal something that is not on the disk yet: a push contains an own event, an
// acknowledgement or a vector says that something is covered, an answer says that a write is done.
// Such an output waits until the disk holds the replica's state of the moment at which the output
// was made [R46]. To other members the replica has then not yet done what its disk does not have,
// and a crash that loses it looks like an earlier crash. Steps do not wait. Neither do notices of
// changes and reads of one replica, which show what is in memory.

// heldBack is a waiting output.
type heldBack struct {
	effect Effect
	moment uint64 // the moment that the disk must hold
}

// maxHeldBytes bounds the waiting messages; more are dropped, as the network may do.
const maxHeldBytes = 64 << 20

// wait is what a Done waits for.
type wait uint8

const (
	forNothing wait = iota
	forDisk         // of a write or a linearizable read
	forFlush        // waits even where outputs do not
)

// gate holds back the outputs of this step that depend on unsaved changes, and releases those whose
// moment the disk holds.
func (c *Core) gate() {
	d := &c.disk
	if d.phase == NoDisk {
		return
	}
	moment := d.moments
	if d.phase != DiskLoading && c.unsaved() {
		moment++
	}
	made := len(c.effects)
	c.write()
	out := c.effects[:0:0]
	for i, e := range c.effects {
		if i < made && moment > d.saved && d.waits(e) {
			d.hold(e, moment)
		} else {
			out = append(out, c.bear(e))
		}
	}
	c.effects = append(d.release(), out...)
	c.effects = append(c.effects, c.overdue()...)
}

// waits reports whether an output waits for the disk.
func (d *disk) waits(e Effect) bool {
	switch e := e.(type) {
	case Send:
		return d.gates() && !e.passes
	case SwapRecord:
		return d.gates()
	case Done:
		return e.wait == forFlush && d.phase == DiskWorking || e.wait == forDisk && d.gates()
	}
	return false
}

// hold queues an output.
func (d *disk) hold(e Effect, moment uint64) {
	if s, ok := e.(Send); ok {
		if d.heldBytes+len(s.Payload) > maxHeldBytes {
			return
		}
		d.heldBytes += len(s.Payload)
	}
	if e, ok := e.(Done); ok && !e.until.IsZero() && (d.until.IsZero() || e.until.Before(d.until)) {
		d.until = e.until
	}
	d.held = append(d.held, heldBack{e, moment})
}

// release returns the outputs whose moment the disk holds.
func (d *disk) release() (out []Effect) {
	i := 0
	for ; i < len(d.held) && d.held[i].moment <= d.saved; i++ {
		if s, ok := d.held[i].effect.(Send); ok {
			d.heldBytes -= len(s.Payload)
		}
		out = append(out, d.held[i].effect)
	}
	clear(d.held[:i])
	if d.held = d.held[i:]; len(d.held) == 0 {
		d.held = nil
	}
	return out
}

// bear returns an output adjusted to the state of the disk: a write that a full or failed disk
// cannot take fails with the error, whichever other members have it.
func (c *Core) bear(e Effect) Effect {
	if done, ok := e.(Done); ok && done.wait != forNothing && c.disk.ailing() {
		return done.without(c.disk.err)
	}
	return e
}

// without returns the outcome of a call whose replica's disk does not hold the change.
func (e Done) without(err error) Done { return Done{ID: e.ID, Store: err} }

// letGo releases or drops the queued outputs of a disk that has stopped working. Pushes are sent,
// so that other members get what the disk does not have. Other messages would claim that the disk
// has it, and are dropped.
func (c *Core) letGo(err error) {
	d := &c.disk
	held := d.held
	d.held, d.heldBytes = nil, 0
	for _, h := range held {
		switch e := h.effect.(type) {
		case Done:
			c.emit(e.without(err))
		case Send:
			if e.Manifest == wire.ReplicatorPush {
				c.emit(e)
			}
		default:
			c.emit(e)
		}
	}
}

// overdue completes the calls that have waited for the disk until their deadline.
func (c *Core) overdue() (out []Effect) {
	d := &c.disk
	if d.until.IsZero() || c.now.Before(d.until) {
		return nil
	}
	d.until = time.Time{}
	d.held = slices.DeleteFunc(d.held, func(h heldBack) bool {
		e, ok := h.effect.(Done)
		switch late := ok && !e.until.IsZero() && !c.now.Before(e.until); {
		case late:
			out = append(out, e.without(ErrDiskSlow))
			return true
		case ok && !e.until.IsZero() && (d.until.IsZero() || e.until.Before(d.until)):
			d.until = e.until
		}
		return false
	})
	return out
}

// flush waits until the disk has the replica's present state.
func (c *Core) flush(ev Flush) {
	c.end()
	c.disk.hurry = true
	c.emit(Done{ID: ev.ID, wait: forFlush, until: ev.Deadline})
}
