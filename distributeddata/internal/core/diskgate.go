package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/barrier"
	"github.com/concord-go/concord/internal/wire"
)

// An output may reveal something that is not on the disk yet: a push contains an own event, an
// acknowledgement or a vector says that something is covered, an answer says that a write is done.
// Such an output waits until the disk holds the replica's state of the moment at which the output
// was made [R46]. To other members the replica has then not yet done what its disk does not have,
// and a crash that loses it looks like an earlier crash. Steps do not wait. Neither do notices of
// changes and reads of one replica, which show what is in memory.

// wait is what a Done waits for.
type wait uint8

const (
	forNothing wait = iota
	forDisk         // of a write or a linearizable read
	forFlush        // waits even where outputs do not
)

// gate holds back the outputs of this step that depend on unsaved changes, and releases those whose
// moment the disk holds.
func (d *disk) gate(s *step, p current, pushed uint64) {
	if d.phase == NoDisk {
		return
	}
	moment := d.barrier.Present(d.phase != DiskLoading && d.unsaved(p))
	made := len(s.effects)
	d.write(s, p, pushed)
	out := s.effects[:0:0]
	for i, e := range s.effects {
		if i < made && !d.barrier.Has(moment) && d.waits(e) {
			d.hold(e, moment)
		} else {
			out = append(out, d.withDiskError(e))
		}
	}
	s.effects = append(d.barrier.Release(), out...)
	for _, e := range d.barrier.Late(s.now) {
		s.effects = append(s.effects, e.(Done).without(ErrDiskSlow))
	}
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
func (d *disk) hold(e Effect, moment barrier.Moment) {
	switch e := e.(type) {
	case Send:
		d.barrier.Hold(e, moment, len(e.Payload), time.Time{})
	case Done:
		d.barrier.Hold(e, moment, 0, e.until)
	default:
		d.barrier.Hold(e, moment, 0, time.Time{})
	}
}

// withDiskError returns an output adjusted to the state of the disk: a write that a full or failed
// disk cannot take fails with the error, whichever other members have it.
func (d *disk) withDiskError(e Effect) Effect {
	if done, ok := e.(Done); ok && done.wait != forNothing && d.ailing() {
		return done.without(d.err)
	}
	return e
}

// without returns the outcome of a call whose replica's disk does not hold the change.
func (e Done) without(err error) Done { return Done{ID: e.ID, Store: err} }

// dropHeld releases or drops the queued outputs of a disk that has stopped working. Pushes are
// sent, so that other members get what the disk does not have. Other messages would claim that the
// disk has it, and are dropped.
func (d *disk) dropHeld(s *step, err error) {
	for _, e := range d.barrier.Clear() {
		switch e := e.(type) {
		case Done:
			s.emit(e.without(err))
		case Send:
			if e.Manifest == wire.ReplicatorPush {
				s.emit(e)
			}
		default:
			s.emit(e)
		}
	}
}

// flush waits until the disk has the replica's present state.
func (d *disk) flush(s *step, ev Flush) {
	d.hurry = true
	s.emit(Done{ID: ev.ID, wait: forFlush, until: ev.Deadline})
}
