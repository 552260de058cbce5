package core

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/barrier"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// aside is what could be read of a disk with a hole. Its vector is not usable: missing atoms would
// look as if they had been removed. So the replica starts as a new one, and is refilled. What its
// vector does not cover then is what the disk alone may have had. It is reported, and its rows stay
// in the store under their generation [R51].
type aside struct {
	keys map[string]causal.Store
	rows []string // rows to delete once everything is safe
	done bool
	at   barrier.Moment // the moment that must be saved first
}

// absorbs reports whether the rows are being loaded and ev does not end that. Such an event is kept
// until they are loaded, or is a call that fails, or has no effect.
func (d *disk) absorbs(s *step, ev Event) bool {
	if d.phase != DiskLoading {
		return false
	}
	switch ev := ev.(type) {
	case Loaded:
		return false
	case Inherit:
		if p := ev.Old.disk.phase; p != DiskLoading && p != NoDisk {
			return false
		}
		d.pending = append(d.pending, ev)
	case View:
		d.pending = append(slices.DeleteFunc(d.pending, isView), ev)
	case Update:
		s.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Read:
		s.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Drain:
		s.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Forget:
		s.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Flush:
		s.emit(Done{ID: ev.ID, Err: ErrLoading})
	}
	return true
}

func isView(ev Event) bool {
	_, ok := ev.(View)
	return ok
}

// take continues with the disk of an earlier incarnation of this process, which was the given
// incarnation. Outputs that waited for the disk belonged to that incarnation and are dropped.
func (d *disk) take(old *disk, was quorum.Incarnation) {
	cfg, views := d.cfg, d.pending
	*d = *old
	d.cfg = cfg
	d.barrier.Clear()
	d.pending = append(slices.DeleteFunc(slices.Clone(old.pending), isView), views...)
	d.again = d.asked
	if was.Number > 0 {
		d.keptAs = [2]quorum.Incarnation{was, old.next}
	}
}

// adoptRows takes the content of the disk. A complete state is adopted with its vector [R50], under
// a new replica id [R2]. Only then is the phase DiskWorking: a step that panics before that
// processes the rows again when it is resumed.
func (c cluster) adoptRows(i *Image) {
	d, h := c.disk, i.header
	if d.phase != DiskLoading {
		return // an earlier incarnation has handed over the disk
	}
	d.holes, d.batches, d.unwritten = len(i.holes), nil, 0
	if m, err := decodeMemory(i.memory); err == nil && i.memory != nil {
		d.keptAs = [2]quorum.Incarnation{m.Of(c.cfg.Member).Inc, h.next}
		c.remember(m)
	}
	d.formed = moment{live: h.live, aside: h.aside, batches: h.batches}
	d.drop(i.trash)
	if !i.sound {
		d.formed.live, d.formed.aside = max(h.live, newest(i.old))+1, min(h.live, h.aside)
		d.formed.members = 1 // differs from any digest, so the header is written now
		d.aside = &aside{keys: i.aside, rows: i.old}
		d.phase = DiskWorking
		c.emit(DiskIs{d.state()})
		return
	}
	if len(i.aside) > 0 || len(i.old) > 0 {
		d.aside = &aside{keys: i.aside, rows: i.old}
	}
	d.kept, d.formed.kept, d.next, d.formed.next = h.kept, h.kept, h.next, h.next
	d.formed.keys, d.formed.seen, d.formed.sum, d.formed.marks = i.state.Keys, i.state.Seen,
		i.state.Sum, i.marks
	d.formed.members = h.members
	d.settleRedo(i.redo, d.formed)
	c.note(c.history.Load(i.state, i.hashes), c.Seen(), c.bases)
	d.phase = DiskWorking
	c.emit(DiskIs{d.state()})
}

// remember merges the memory of an earlier process or incarnation, unless a record holds the
// membership [M9].
func (c cluster) remember(m quorum.Memory) {
	if !c.cfg.Recorded {
		c.recall(c.members.Merge(m))
	}
}

// newest returns the newest generation among rows.
func newest(rows []string) (generation uint64) {
	for _, key := range rows {
		if n, ok := parseRow(key); ok {
			generation = max(generation, n.generation)
		}
	}
	return generation
}

// sortAside finds, once this replica has been refilled, what the disk alone had. When the refilled
// state is safe on the disk, the other rows that were set aside are deleted.
func (d *disk) sortAside(s *step, ready bool, p current) {
	a := d.aside
	switch {
	case a == nil || d.phase != DiskWorking:
	case !a.done && ready:
		var only []string
		only, a.rows = a.only(p.Seen())
		a.done, a.keys, a.at = true, nil, d.barrier.Next()
		if d.formed.members = 1; len(only) == 0 { // differs from any digest: a header is written
			d.formed.aside = d.formed.live
		} else {
			s.emit(Unrecovered{only})
		}
	case a.done && d.barrier.Has(a.at) && len(d.batches) == 0 && !d.unsaved(p):
		d.drop(a.rows)
		d.aside = nil
		s.emit(DiskIs{d.state()})
	}
}

// only returns, in order, the keys that have atoms which seen does not cover, and the rows of no
// such atom.
func (a *aside) only(seen causal.Vector) (keys, useless []string) {
	uncovered := map[string]bool{}
	for key, s := range a.keys {
		for _, e := range s.Prefix("") {
			for l := range e.All() {
				if !seen.Covers(l.Dot) {
					uncovered[key] = true
				}
			}
		}
	}
	for _, row := range a.rows {
		if n, ok := parseRow(row); !ok || n.vector || !uncovered[n.key] || !a.keeps(n, seen) {
			useless = append(useless, row)
		}
	}
	return slices.Sorted(maps.Keys(uncovered)), useless
}

// keeps reports whether the row, of a key with uncovered atoms, may belong to one of them.
func (a *aside) keeps(n rowName, seen causal.Vector) bool {
	if n.kind != rowAtom || len(n.rest) <= 8 {
		return n.kind == rowPart
	}
	path, r := n.rest[:len(n.rest)-8], n.rest[len(n.rest)-8:]
	e, ok := a.keys[n.key].Get(path)
	if !ok {
		return false
	}
	l, ok := e.Of(causal.Replica(binary.BigEndian.Uint64([]byte(r))))
	return ok && !seen.Covers(l.Dot)
}

// keeps reports whether this replica's disk works and has everything that its member ever
// acknowledged.
func (d *disk) keeps() bool { return d.kept && d.phase == DiskWorking }

// knows compares the incarnation that other members remember with those that the disk knows, until
// this replica, me, has its place. If it is another one, the disk is an older one of this member.
func (d *disk) knows(own, me quorum.Incarnation) {
	if own != me && !slices.Contains(d.keptAs[:], own) {
		d.kept = false
	}
}

// foretold reports whether the disk knows as which incarnation this replica takes its place. Only
// then do other members hear of it: if the disk fails first, its member has acknowledged nothing
// that it lacks, and it must not look like an older one [R52].
func (d *disk) foretold(next quorum.Incarnation) bool {
	if d.phase == NoDisk || d.cfg.Behind > 0 {
		return true
	}
	if d.next != next {
		d.next, d.nextAt = next, d.barrier.Next()
	}
	return d.phase == DiskWorking && d.barrier.Has(d.nextAt)
}
