package core

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/sim"
)

// Histories of members with disks. The disks are slow, full or fail, lose their power between any
// two batches, and have rows that rot. No write acknowledged at a majority is lost, even if all
// members lose power at once. Nothing that a single member has reported as done is lost either,
// while its disk is intact.

// simDisk is the disk of a member, which outlives its processes.
type simDisk struct {
	content
	under       []Commit // not written yet
	incarnation int      // of the process
	busy        time.Time
	full        time.Time // full until then
	fails       bool      // the next batch fails
	failed      bool      // it has failed, until the next process
	former      content   // at an earlier moment
	safe        names     // what must be on it
	counts      bool      // it has a member that counts, with all that it has acknowledged
}

// content is what a disk holds. Rows that are rotten cannot be read.
type content struct {
	rows   map[string][]byte
	rotten map[string]bool
}

func (c content) clone() content { return content{maps.Clone(c.rows), maps.Clone(c.rotten)} }

func (s *play) diskConfig() *DiskConfig {
	if !s.disks {
		return nil
	}
	cfg := &DiskConfig{Owner: "sim", Bytes: 4000, Events: 40, Retry: time.Second,
		batchRows: s.batchRows}
	if s.behind {
		cfg.Behind = 200 * time.Millisecond
	}
	return cfg
}

// commit writes a batch after a while, after the earlier ones.
func (s *play) commit(sl *slot, e Commit) {
	if err := e.Batch.Validate(); err != nil {
		s.w.Fail("%s: %v", sl.id(), err)
	}
	d := &sl.disk
	took := s.w.Span("sync", 0, 40*time.Millisecond)
	if s.w.Chance("stuck", 1./150) {
		took = s.w.Span("stuck-for", 0, 6*time.Second)
		s.happened["slow syncs"]++
	}
	if now := s.w.Now(); d.busy.Before(now) {
		d.busy = now
	}
	d.busy = d.busy.Add(took)
	d.under = append(d.under, e)
	incarnation := d.incarnation
	s.w.After(d.busy.Sub(s.w.Now()), func() {
		if d.incarnation == incarnation {
			s.written(sl)
		}
	})
}

// written completes the first of the batches.
func (s *play) written(sl *slot) {
	d := &sl.disk
	e := d.under[0]
	d.under = d.under[1:]
	var err error
	switch {
	case d.failed:
		err = store.ErrFailed
	case d.fails:
		d.fails, d.failed, err = false, true, fmt.Errorf("sync: %w", store.ErrFailed)
		s.happened["failed syncs"]++
		if s.w.Chance("there", 1./2) {
			d.apply(e.Batch)
		}
		s.w.After(s.w.Span("replaced", time.Second, 8*time.Second), func() { s.reboot(sl) })
	case s.w.Now().Before(d.full):
		err = fmt.Errorf("write: %w", store.ErrFull)
		s.happened["full disks"]++
	default:
		if d.apply(e.Batch); s.w.Chance("former", 1./30) {
			d.former = d.clone()
		}
	}
	s.step(sl, Committed{Number: e.Number, Err: err})
	s.noteCounting(sl)
}

func (d *simDisk) apply(b *store.Batch) {
	if d.rows == nil {
		d.rows = map[string][]byte{}
	}
	for o := range b.Ops() {
		if delete(d.rotten, o.Key); o.Delete {
			delete(d.rows, o.Key)
		} else {
			d.rows[o.Key] = o.Value
		}
	}
}

// reboot restarts a member whose disk has failed.
func (s *play) reboot(sl *slot) {
	switch {
	case !sl.disk.failed:
	case sl.core != nil:
		s.end(sl)
		s.tellViews(3 * time.Second)
		s.comeBack(sl, s.w.Span("rebooted", 0, 2*time.Second))
	case sl.coming: // between two incarnations of its process
		s.w.After(time.Second, func() { s.reboot(sl) })
	}
}

// crashDisk ends the batches in flight when the process ended: some of them, in order, are written.
func (s *play) crashDisk(sl *slot) {
	d := &sl.disk
	for _, e := range d.under {
		if d.failed || s.w.Now().Before(d.full) || !s.w.Chance("there", 1./2) {
			break
		}
		s.happened["lost batches that were there"]++
		d.apply(e.Batch)
	}
	if len(d.under) > 0 {
		s.happened["crashes"]++
	}
	d.under, d.failed, d.fails, d.busy = nil, false, false, time.Time{}
	d.incarnation++
}

// loadSoon reads the rows for a process that starts.
func (s *play) loadSoon(sl *slot) {
	if !s.disks {
		return
	}
	s.loadIn(sl, s.w.Span("load", 0, 600*time.Millisecond))
}

// loadIn gives the rows to the process of a member, in whatever incarnation it is then.
func (s *play) loadIn(sl *slot, after time.Duration) {
	incarnation := sl.disk.incarnation
	s.w.After(after, func() {
		switch {
		case sl.disk.incarnation != incarnation:
		case sl.core == nil:
			s.loadIn(sl, 100*time.Millisecond)
		default:
			s.load(sl)
		}
	})
}

func (s *play) load(sl *slot) {
	d := &sl.disk
	i := d.image(s.w.Fail)
	if len(i.redo) > 0 {
		s.happened["staged images"]++
	}
	if len(i.holes) > 0 && len(d.rotten) == 0 {
		s.w.Fail("%s: holes in a whole disk: %v", sl.id(), i.holes)
	}
	if len(i.holes) == 0 && len(d.rotten) > 0 && !d.rotsOfNoUse(i.header.live) {
		s.w.Fail("%s: %d rows are rotten, and nobody noticed", sl.id(), len(d.rotten))
	}
	s.step(sl, Loaded{Image: i})
	if lost := d.safe.without(sl.shows); len(lost) > 0 && len(i.holes) == 0 {
		s.w.Fail("%s does not show any more what its disk had: %v", sl.id(), lost)
	}
}

// rotsOfNoUse reports whether the rotten rows belong to a generation other than the live one.
func (d *simDisk) rotsOfNoUse(live uint64) bool {
	for key := range d.rotten {
		if n, ok := parseRow(key); !ok || n.generation == live {
			return false
		}
	}
	return true
}

func (d *simDisk) image(fail func(string, ...any)) *Image {
	l := NewLoader("sim")
	for _, key := range slices.Sorted(maps.Keys(d.rows)) {
		if d.rotten[key] {
			l.Corrupt(key)
		} else if err := l.Add(key, d.rows[key]); err != nil {
			fail("%v", err)
		}
	}
	return l.Image()
}

// covers returns how many events of a replica the disk covers.
func (d *simDisk) covers(r causal.Replica) uint64 {
	h, err := decodeHeader(d.rows[rowHeader])
	if err != nil {
		return 0
	}
	key := originOp(h.live, r, 0, 0).Key
	value := d.rows[key]
	if redo := d.rows[rowRedo+key]; h.redo > 0 && len(redo) > 0 {
		value = redo[1:]
	}
	n, _ := binary.Uvarint(value)
	return n
}

// bears asserts that what a member acknowledges is on its disk.
func (s *play) bears(sl *slot, of causal.Replica, n uint64) {
	if s.disks && !s.behind && n > sl.disk.covers(of) {
		s.w.Fail("%s acknowledges %d events of %v, and its disk has %d", sl.id(), n, of,
			sl.disk.covers(of))
	}
}

// blackout cuts the power of all members: blackout for TIME. They come back in any order.
func (s *play) blackout(a sim.Args) {
	s.happened["blackouts"]++
	for _, sl := range s.slots {
		if sl.core == nil {
			continue
		}
		s.end(sl)
		s.comeBack(sl, s.w.Span("dark", 0, a.Span(1)))
	}
}

// fill fills the disk of a member: fill MEMBER for TIME.
func (s *play) fill(a sim.Args) {
	s.slots[a.Int(0, len(s.slots))].disk.full = s.w.Now().Add(a.Span(2))
}

// fail makes the next sync of a member's disk fail: fail MEMBER.
func (s *play) fail(a sim.Args) { s.slots[a.Int(0, len(s.slots))].disk.fails = true }

// rot stops a member for a while, and damages one row of its disk: rot MEMBER for TIME. It
// corresponds to a failure of a member without a disk.
func (s *play) rot(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || !s.mayFail(sl) || sl.core.members.inc.Number == 0 {
		return
	}
	s.end(sl)
	d := &sl.disk
	if keys := slices.Sorted(maps.Keys(d.rows)); len(keys) > 0 {
		s.happened["rotten rows"]++
		d.rotten = map[string]bool{}
		for range s.w.Number("rows", 1, 3) {
			d.rotten[keys[s.w.Number("row", 0, len(keys)-1)]] = true
		}
		d.safe = nil
	}
	s.comeBack(sl, a.Span(2))
}

// tail stops a member for a while, and removes the last batches from its disk, which does not
// notice: tail MEMBER for TIME.
func (s *play) tail(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || !s.mayFail(sl) || sl.disk.former.rows == nil {
		return
	}
	s.end(sl)
	s.thawed = true // it may count before others return what it has lost
	s.happened["tails cut"]++
	sl.disk.content, sl.disk.safe = sl.disk.former.clone(), nil
	s.comeBack(sl, a.Span(2))
}

func newDiskPlay(w *sim.World) *play {
	s := newPlay(w)
	s.past, s.behind = 0, w.Chance("behind", 1./6)
	return s.onDisks()
}

// onDisks gives the members disks.
func (s *play) onDisks() *play {
	s.disks, s.badClocks = true, false
	if s.w.Chance("small-batches", 1./2) {
		s.batchRows = s.w.Number("batch-rows", 6, 30)
	}
	return s
}

// makeDisks generates the events of disks.
func (s *play) makeDisks(r *rand.Rand) {
	at := func() time.Duration { return warm + s.w.Moment(span) }
	spell := func() time.Duration { return time.Duration(500+r.IntN(5000)) * time.Millisecond }
	for range r.IntN(3) {
		if !s.behind {
			s.w.Act(at(), "blackout", "for", spell())
		}
	}
	for range r.IntN(4) {
		s.w.Act(at(), "fill", r.IntN(players), "for", spell())
	}
	for range r.IntN(3) {
		s.w.Act(at(), "fail", r.IntN(players))
	}
	for range r.IntN(6) {
		s.w.Act(at(), "kill", r.IntN(players), "for", spell())
	}
	if s.w.Chance("rot", 1./3) {
		for range 1 + r.IntN(2) {
			s.w.Act(at(), []string{"rot", "tail"}[r.IntN(2)], r.IntN(players), "for", spell())
		}
	}
}

// TestHistories_OnDisks plays histories of members with disks.
func TestHistories_OnDisks(t *testing.T) {
	must := []string{"acknowledged writes", "panics", "full disks", "failed syncs", "crashes",
		"lost batches that were there", "blackouts", "slow syncs"}
	if seeds.Count >= 1000 {
		must = append(must, "rotten rows", "tails cut", "staged images")
	}
	s := *seeds
	s.Count = max(1, s.Count/2)
	histories(t, s, func(w *sim.World) *play {
		s := newDiskPlay(w)
		s.makeDisks(w.Rand())
		s.run()
		return s
	}, must...)
}

// mendDisks ends all disk faults.
func (s *play) mendDisks() {
	for _, sl := range s.slots {
		sl.disk.full, sl.disk.fails = time.Time{}, false
		s.reboot(sl)
	}
}
