package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/wire"
)

// An output may say what is not on the disk yet: a push shows an own event, an acknowledgement or a vector says
// that something is covered, an answer that a write is done. Such an output waits until the disk holds what the replica
// held when it was made [R60]. To others the replica is then one that has not done yet what its disk does not have,
// and a crash that loses this is one that came before it. Steps do not wait, nor do notices of changes and reads of one
// replica: they show what is in memory.

// heldBack is an output that waits.
type heldBack struct {
	effect Effect
	moment uint64 // the disk must hold this one
}

// maxHeldBytes bounds the messages that wait; more are dropped, as the network does.
const maxHeldBytes = 64 << 20

// wait says for what a Done waits.
type wait uint8

const (
	forNothing wait = iota
	forDisk         // of a write or a linearizable read
	forFlush        // also where outputs do not wait
)

// gate holds back the outputs of this step that the disk does not bear out yet, and lets those go that it does.
func (c *Core) gate() {
	d := &c.disk
	if d.phase == NoDisk {
		return
	}
	moment := d.moments
	if c.revoked != nil { // it says nothing that counts, and must ask for what is to take the place of this
		c.effects = append(d.release(), c.effects...)
		return
	}
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

// hold keeps an output back.
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

// release returns the outputs that the disk bears out.
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

// bear returns an output as it is while the disk is as it is: a write that a disk which is full or has failed does not
// take ends with the error, whoever else has it.
func (c *Core) bear(e Effect) Effect {
	if done, ok := e.(Done); ok && done.wait != forNothing && c.disk.ailing() {
		return done.without(c.disk.err)
	}
	return e
}

// without returns the outcome of a call whose replica's disk does not have it.
func (e Done) without(err error) Done { return Done{ID: e.ID, Store: err} }

// letGo empties the gate of a disk that does not work any more. Pushes go, so that others have what the disk does not;
// other messages would say that it does, and are dropped.
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

// overdue ends the calls that have waited for the disk until their deadline.
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

// rename drops the messages that wait: they are signed by an id that this replica has no more. What the disk holds is
// not all that it ever acknowledged [R2a].
func (d *disk) rename() {
	d.kept = false
	d.held = slices.DeleteFunc(d.held, func(h heldBack) bool {
		_, ok := h.effect.(Send)
		return ok
	})
	d.heldBytes = 0
}

// flush waits until the disk has what this replica holds now.
func (c *Core) flush(ev Flush) {
	c.end()
	c.disk.hurry = true
	c.emit(Done{ID: ev.ID, wait: forFlush, until: ev.Deadline})
}
