package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Txn is the working copy of one update. Nothing is changed unless Modify returns nil.
type Txn struct {
	core  *Core
	stamp uint64
	work  []*working          // in the order they were touched, by key once Modify has returned
	index map[string]*working // of the work, when it is much
	room  [1]*working         // for the work of most updates
}

// working is what an event does to a key, so far.
type working struct {
	key     string
	before  causal.Store // when the event began
	base    causal.Store // what the changes are relative to: blank of atoms once cleared
	was     causal.Store // what this update's changes are relative to: base, or what earlier ones left
	next    causal.Store
	cleared bool
	change  causal.Change // from was to next
}

// Dot returns the event that the update will be, or a part of.
func (t *Txn) Dot() causal.Dot { return t.core.nextDot() }

// Stamp returns the hybrid time of the update: 48 bits of milliseconds, 16 bits of a counter. It
// grows with every update of a replica.
func (t *Txn) Stamp() uint64 { return t.stamp }

// Seen returns what the replica has seen before the event.
func (t *Txn) Seen() causal.Vector { return t.core.seen }

// After returns what the replica will have seen with the event, if the update changes anything.
func (t *Txn) After(changes bool) causal.Vector {
	if !changes && len(t.core.open) == 0 {
		return t.core.seen
	}
	return t.core.seen.With(t.Dot())
}

// Get returns the atoms of a key as the update has left them so far.
func (t *Txn) Get(key string) causal.Store { return t.at(key).next }

// Put replaces the atoms of a key by what mutators made of them.
func (t *Txn) Put(key string, s causal.Store) { t.at(key).next = s }

// Clear takes away everything under a key that this replica has seen [R8], and what the event has put there.
func (t *Txn) Clear(key string) {
	w := t.at(key)
	s := w.before
	for path := range w.before.Prefix("") {
		s = s.Reset(path, t.Dot())
	}
	w.base, w.was, w.next, w.cleared = s, s, s, !w.before.Empty()
}

func (t *Txn) at(key string) *working {
	if w := t.find(key); w != nil {
		return w
	}
	w := t.core.working(key)
	if t.work == nil {
		t.work = t.room[:0]
	}
	t.work = append(t.work, w)
	if t.index != nil {
		t.index[key] = w
	}
	return w
}

// few is how many keys of an update are looked through one by one.
const few = 16

func (t *Txn) find(key string) *working {
	if t.index == nil && len(t.work) > few {
		t.index = make(map[string]*working, 4*few)
		for _, w := range t.work {
			t.index[w.key] = w
		}
	}
	if t.index != nil {
		return t.index[key]
	}
	for _, w := range t.work {
		if w.key == key {
			return w
		}
	}
	return nil
}

// working returns a copy of what the open event has done to a key.
func (c *Core) working(key string) *working {
	if i, ok := find(c.open, key); ok {
		w := *c.open[i]
		w.was = w.next
		return &w
	}
	h, _ := c.keys.Get(key)
	return &working{key: key, before: h.Store, base: h.Store, was: h.Store, next: h.Store}
}

func find(work []*working, key string) (int, bool) {
	return slices.BinarySearchFunc(work, key, func(w *working, k string) int { return strings.Compare(w.key, k) })
}

// update makes what Modify does a part of the open event [R3]. An error leaves everything as it was. If
// somebody waits for the outcome the event ends here.
func (c *Core) update(ev Update) {
	if ev.Level.Kind != Local && c.cfg.MinMembers < 1 {
		c.emit(Done{ID: ev.ID, Err: ErrMinMembers})
		return
	}
	if c.revoked != nil {
		c.delay(ev)
		return
	}
	if c.disk.crowded() {
		c.emit(Done{ID: ev.ID, Err: ErrDiskBusy})
		return
	}
	t := c.newTxn()
	if err := t.run(ev.Modify); err != nil {
		c.emit(Done{ID: ev.ID, Err: err})
		return
	}
	c.openAs = t.Dot()
	if len(c.open) == 0 {
		c.open = append(c.open, t.work...)
	}
	for _, w := range t.work {
		c.merge(w)
	}
	if ev.ID != 0 {
		c.end()
	}
	if c.unpushed > maxUnpushed {
		c.push()
	}
	if ev.ID != 0 {
		c.startWrite(ev)
	}
}

func (c *Core) newTxn() *Txn {
	c.clock = max(c.clock+1, uint64(max(c.now.UnixMilli(), 0))<<16)
	return &Txn{core: c, stamp: c.clock}
}

// run carries out modify on the working copy, and checks what it did.
func (t *Txn) run(modify func(*Txn) error) error {
	if err := modify(t); err != nil {
		return err
	}
	slices.SortFunc(t.work, func(a, b *working) int { return strings.Compare(a.key, b.key) })
	for _, w := range t.work {
		var err error
		if w.change, err = causal.Between(w.was, w.next, t.Dot()); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
		if err := checkChange(w.key, w.change); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
	}
	return nil
}

// checkChange refuses what a receiver would refuse [R51]. How much there is of it is not bounded: what
// does not fit into one message or record crosses in parts.
func checkChange(key string, c causal.Change) error {
	if c.Empty() {
		return nil
	}
	for _, a := range c.Adds {
		switch {
		case len(a.Path) == 0 || len(a.Path) > causal.MaxPath:
			return fmt.Errorf("%w: path of %d bytes, limit %d", causal.ErrTooLarge, len(a.Path), causal.MaxPath)
		case len(a.Payload) > causal.MaxState:
			return fmt.Errorf("%w: element of %d bytes, limit %d", causal.ErrTooLarge, len(a.Payload), causal.MaxState)
		}
	}
	return CheckKey(key)
}

// merge makes what an update did to a key a part of the open event.
func (c *Core) merge(w *working) {
	if i, ok := find(c.open, w.key); ok {
		c.open[i] = w
	} else {
		c.open = slices.Insert(c.open, i, w)
	}
	size := keyChange{key: w.key, Change: w.change}.size()
	for _, a := range w.change.Adds {
		size += len(a.Payload)
	}
	c.unpushed += size
	c.gather(size)
}

// end makes the open event the newest own one and its working copy the state. An event that amounts to nothing uses
// no number.
//
// Updates that nobody waits for share an event, up to the next input that is not one of them, so nobody
// sees what is between them: atoms of one event have one dot, and what a dot says must never change.
// What they cost others is what they amount to: a counter that was raised a hundred times is one atom.
func (c *Core) end() {
	if len(c.open) == 0 {
		return
	}
	before := c.seen
	c.keepUndo(undo{before.Get(c.me) + 1, before, slices.Clone(c.open)})
	ch := c.commit(c.open)
	if ch.own > 0 {
		c.prints.add(c.seen.Get(c.me), c.sum, before, c.clock)
	}
	clear(c.open)
	c.open = c.open[:0]
	c.note(ch)
}

// keyChange returns what the event d did to the key.
func (w *working) keyChange(d causal.Dot) keyChange {
	k := keyChange{key: w.key, Change: w.change}
	if !w.was.Same(w.base) { // not the only update that touched it; all of them have been checked
		k.Change, _ = causal.Between(w.base, w.next, d)
	}
	if !w.cleared {
		return k
	}
	k.Clear = true
	for path, m := range w.base.Marks() {
		if m.By == d {
			k.Marks = append(k.Marks, causal.MarkAt{Path: path, Mark: m})
		}
	}
	return k
}

// push sends the own events that have not been pushed to every member, once, as one delta [R7, R7a].
// Whom it does not reach, or who has too much unacknowledged already, sees the gap at the next
// heartbeat and asks.
//
// Own events are gathered until the next event that is not an update: a wake, at the latest, which
// NextWake asks for: at once if nothing has been pushed for a pushPause, or if a call waits for others. So a burst
// of updates is one message per member, which leaves out what came and went in it [R7b]. Nothing of others is
// applied, and nothing that another replica may apply is told, before they are pushed: what they follow is then the
// same for all of them, and nobody has some of them alone.
func (c *Core) push() {
	c.end()
	from, n := c.pushed, c.seen.Get(c.me)
	c.pushed, c.unpushed = n, 0
	if from == n {
		return
	}
	c.pushedAt, c.urgent = c.now, false
	events, ok := c.log.from(c.me, from+1)
	if !ok || !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.replica != 0 }) {
		return
	}
	d := c.pushOf(events, from, n)
	payload := c.enc.push(&d, c.keys, c.base)
	clear(d.events)
	if c.events = d.events[:0]; cap(c.events) > maxRoom {
		c.events = nil
	}
	for _, p := range c.peers {
		switch {
		case p.replica == 0:
		case len(payload) > wire.MaxPayload:
			c.sendBeat(p) // shows the gap; the answer comes in parts
		case p.inFlight+len(payload) <= c.cfg.PushBytes:
			p.inFlight += len(payload)
			p.pushed = append(p.pushed, sent{n, len(payload)})
			c.send(p, wire.ReplicatorPush, payload)
		}
	}
}

// pushOf returns own events as a delta. Of what they follow it names what neither earlier pushes have
// followed nor a push that is named: whoever has seen our event before these, or an event of another, has
// seen all that it follows.
func (c *Core) pushOf(events []event, from, n uint64) delta {
	d := delta{head: c.seen, events: c.events[:0]}
	if c.told.Len() > 0 {
		follows := []causal.Dot{{Replica: c.me, N: n}}
		for e := range c.seen.Beyond(c.told) {
			if !c.implied.Covers(e) {
				follows = append(follows, e)
			}
		}
		d.head = causal.MakeVector(follows...)
	}
	c.told, c.implied = c.seen, causal.Vector{}
	d.base = d.head.Set(c.me, from)
	d.origin, d.prints = c.me, c.prints.behind(from, len(events))
	for _, e := range events {
		d.events = append(d.events, deltaEvent{event: e})
	}
	return d
}

// pushPause is how long after a push others have to wait for the next, if no call does.
const pushPause = time.Millisecond

// maxUnpushed bounds what is gathered for one push, in estimated bytes.
const maxUnpushed = wire.MaxPayload / 4

// acknowledged notes that p covers our events up to n.
func (p *peer) acknowledged(n uint64) {
	p.acked = max(p.acked, n)
	i := 0
	for ; i < len(p.pushed) && p.pushed[i].n <= n; i++ {
		p.inFlight -= p.pushed[i].size
	}
	if rest := p.pushed[i:]; len(rest) <= i {
		p.pushed = append(p.pushed[:0], rest...) // the room in front is used again
	} else {
		p.pushed = rest
	}
}
