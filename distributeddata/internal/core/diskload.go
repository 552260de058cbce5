package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// aside is what could be read of a disk with a hole. Its vector is no vector: what is missing would look as if it had
// been removed. So it counts for nothing until this replica has been refilled; what no vector covers then is done
// again, as an own event [R22a].
type aside struct {
	keys map[string]causal.Store
	rows []string // to be deleted once all that is safe
	done bool
	at   uint64 // once this moment is saved
}

// loading takes an input while the rows are being loaded. It reports false for all that comes later.
func (c *Core) loading(ev Event) bool {
	d := &c.disk
	if d.phase != DiskLoading {
		return false
	}
	switch ev := ev.(type) {
	case Loaded:
		c.adoptRows(ev.Image)
		c.takePending()
		return false
	case View:
		d.pending = append(slices.DeleteFunc(d.pending, isView), ev)
	case Inherit:
		c.inheritDisk(ev)
		return d.phase == DiskLoading
	case Update:
		c.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Read:
		c.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Drain:
		c.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Forget:
		c.emit(Done{ID: ev.ID, Err: ErrLoading})
	case Flush:
		c.emit(Done{ID: ev.ID, Err: ErrLoading})
	}
	return true
}

// takePending takes what has come before the rows were loaded.
func (c *Core) takePending() {
	for d := &c.disk; len(d.pending) > 0 && d.phase != DiskLoading; d.pending = d.pending[1:] {
		c.input(d.pending[0])
	}
}

func isView(ev Event) bool {
	_, ok := ev.(View)
	return ok
}

// inheritDisk takes the disk of a former life that had loaded it.
func (c *Core) inheritDisk(ev Inherit) {
	d := &c.disk
	if ev.Old.disk.phase == DiskLoading || ev.Old.disk.phase == NoDisk {
		d.pending = append(d.pending, ev)
		return
	}
	c.takeDisk(ev.Old)
	c.remember(ev.Old.roll.memory)
	c.takePending()
}

// takeDisk goes on with the disk of a former life of this process. What waited for it is of that life.
func (c *Core) takeDisk(old *Core) {
	cfg, views := c.disk.cfg, c.disk.pending
	c.disk = old.disk
	c.disk.cfg, c.disk.held, c.disk.heldBytes = cfg, nil, 0
	c.disk.pending = append(slices.DeleteFunc(slices.Clone(old.disk.pending), isView), views...)
	c.disk.again = c.disk.asked
	if old.roll.inc.number > 0 {
		c.disk.keptAs = old.roll.inc
	}
}

// adoptRows takes what the disk held. What it held whole is adopted, with its vector [R22]; the id is another [R2].
// The disk works only then: a step that panics before that takes the rows once more when it is resumed.
func (c *Core) adoptRows(i *Image) {
	d, h := &c.disk, i.header
	d.holes, d.batches, d.unwritten = len(i.holes), nil, 0
	if m, err := decodeMemory(i.memory); err == nil && i.memory != nil {
		d.keptAs = m.of(c.cfg.Member).inc
		c.remember(m)
	}
	d.formed = moment{live: h.live, aside: h.aside, batches: h.batches}
	d.drop(i.trash)
	if !i.sound {
		d.formed.live, d.formed.aside = max(h.live, newest(i.old))+1, min(h.live, h.aside)
		d.formed.members = 1 // another than any: the header is written now
		d.aside = &aside{keys: i.aside, rows: i.old}
		d.phase = DiskWorking
		c.emit(DiskIs{c.Disk()})
		return
	}
	if len(i.aside) > 0 || len(i.old) > 0 {
		d.aside = &aside{keys: i.aside, rows: i.old}
	}
	d.kept, d.formed.kept = h.kept, h.kept
	d.formed.keys, d.formed.seen, d.formed.sum, d.formed.marks = i.state.Keys, i.state.Seen, i.state.sum, i.marks
	d.formed.members = h.members
	d.settleRedo(i.redo, d.formed)
	if i.prints != nil {
		c.heardOf = i.prints
	}
	c.note(c.join(i.state))
	d.phase = DiskWorking
	c.emit(DiskIs{c.Disk()})
}

// remember takes what a former process or life remembered of the members, unless a record says that [M9].
func (c *Core) remember(m memory) {
	if !c.cfg.Recorded {
		c.recall(c.roll.merge(m))
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

// reissue does again what was set aside and what nobody's vector covers, once this replica has been refilled. When
// that is safe the rows of it are deleted.
func (c *Core) reissue() {
	d := &c.disk
	a := d.aside
	switch {
	case a == nil || d.phase != DiskWorking:
	case !a.done && c.ready && c.revoked == nil:
		c.doAside(a.keys)
		a.done, a.keys, a.at = true, nil, d.moments+1
		d.formed.aside, d.formed.members = d.formed.live, 1
	case a.done && d.saved >= a.at && len(d.batches) == 0 && !c.unsaved():
		d.drop(a.rows)
		d.aside = nil
		c.emit(DiskIs{c.Disk()})
	}
}

// doAside makes an own event of the atoms that are not covered.
func (c *Core) doAside(keys map[string]causal.Store) {
	c.end()
	t := c.newTxn()
	_ = t.run(func(t *Txn) error { // what was read from rows had been checked when it was written
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c.doAsideOf(t, key, keys[key])
		}
		return nil
	})
	for _, w := range t.work {
		c.merge(w)
	}
	c.end()
}

// doAsideOf puts the atoms of a key that are not covered into the event of t. What this replica has written at a path
// since stays.
func (c *Core) doAsideOf(t *Txn, key string, old causal.Store) {
	s, here := t.Get(key), t.Get(key)
	for path, e := range old.Prefix("") {
		for l := range e.All() {
			if c.seen.Covers(l.Dot) {
				continue
			}
			if owner, slot := causal.SlotOwner(path); slot {
				s = c.addSlot(t, s, here, path, owner, l)
			} else if at, ok := s.Get(path); !ok || !mine(at, c.me) {
				s = s.Insert(causal.Clone(path), causal.Leaf{Dot: t.Dot(), Payload: l.Payload})
			}
		}
	}
	t.Put(key, s)
}

func mine(e causal.Entry, me causal.Replica) bool {
	_, ok := e.Of(me)
	return ok
}

// addSlot adds what a counter slot of another replica held to that of this one, less what others have seen of it.
func (c *Core) addSlot(t *Txn, s, here causal.Store, path string, owner causal.Replica, l causal.Leaf) causal.Store {
	total, err := causal.ParseTotal(l.Payload)
	beside, ok := causal.SlotOf(path, c.me)
	if err != nil || !ok {
		return s
	}
	if total.Since <= c.seen.Get(owner) {
		e, inHere := here.Get(path)
		was, ok := causal.Total{}, false
		if inHere {
			had, _ := e.Of(owner)
			was, err = causal.ParseTotal(had.Payload)
			ok = err == nil && was.Since == total.Since
		}
		m, marked := here.Mark(path)
		switch {
		case ok:
		case marked && total.Since <= m.N:
			was = causal.Total{Plus: m.Plus, Minus: m.Minus}
		default:
			return s // its chain was reset: how much of it that took is not known
		}
		total.Plus, total.Minus = total.Plus-min(was.Plus, total.Plus), total.Minus-min(was.Minus, total.Minus)
	}
	if total.Plus|total.Minus == 0 {
		return s
	}
	total.Since = t.Dot().N
	if e, ok := s.Get(beside); ok {
		had, _ := e.Of(c.me)
		if was, err := causal.ParseTotal(had.Payload); err == nil {
			total.Since, total.Plus, total.Minus = was.Since, total.Plus+was.Plus, total.Minus+was.Minus
		}
	}
	return s.Put(beside, causal.Leaf{Dot: t.Dot(), Payload: total.Payload()})
}

// keeps reports whether this replica's disk works, and has all that its member ever acknowledged. Of one that stands
// still now an answer says that too: what it was loaded with is in the answer, and nobody asks again.
func (d *disk) keeps() bool { return d.kept && d.phase == DiskWorking }

// takePlace compares the incarnation that others remember with the one that the disk does. If that is another, the disk
// is a former one of this member.
func (d *disk) takePlace(last incarnation, first bool) {
	if d.kept && first && d.keptAs != last {
		d.kept = false
	}
}

// restarted reports whether so many of those that count have kept what they acknowledged on their disks that they
// meet every quorum [R65]. Where outputs do not wait for disks they have kept it only nearly: then nobody may count,
// so that all of them were down.
func (c *Core) restarted() bool {
	if !c.disk.keeps() || c.roll.entering {
		return false
	}
	have := 1
	for _, r := range c.roll.all {
		p := c.peerOf(r.inc.replica)
		if r.name == c.cfg.Member || r.rank != in && r.rank != going || p == nil {
			continue
		}
		switch {
		case p.answered && c.disk.cfg.Behind > 0:
			return false
		case p.answered || p.whole:
			have++
		case !p.refilled && c.now.Before(c.roll.takeAt.Add(c.cfg.Patience)):
			return false
		}
	}
	return have >= majorityOf(max(c.roll.size, c.cfg.MinMembers))
}
