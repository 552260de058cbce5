package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Txn is the working copy of one update. Nothing changes unless Modify returns nil.
type Txn struct {
	open  *openEvents
	keys  Keys // the committed ones
	fits  func(key string, bytes int) error
	dot   causal.Dot
	stamp uint64
	work  []*working          // in the order of first use; by key once Modify has returned
	index map[string]*working // index of a large work
	room  [1]*working         // buffer for the work of most updates
}

// working is the effect of an event on a key, so far.
type working struct {
	key     string
	before  causal.Store // when the event began
	base    causal.Store // the base of the event's changes: without atoms once cleared
	was     causal.Store // the base of this update's changes: base, or what earlier updates left
	next    causal.Store
	bytes   int // of next, as far as it has been checked
	cleared bool
	change  causal.Change // from was to next
}

// Dot returns the dot of the event that the update will be, or be a part of.
func (t *Txn) Dot() causal.Dot { return t.dot }

// Stamp returns the hybrid logical time of the update: 48 bits of milliseconds and 16 bits of a
// counter. It grows with every update of a replica.
func (t *Txn) Stamp() uint64 { return t.stamp }

// Seen returns what the replica had seen before the event.
func (t *Txn) Seen() causal.Vector { return t.open.seen() }

// After returns what the replica will have seen after the event, if the update changes anything.
func (t *Txn) After(changes bool) causal.Vector {
	if !changes && !t.open.using {
		return t.Seen()
	}
	return t.open.seenUpTo(t.dot.N)
}

// Get returns the atoms of a key, including the update's changes so far.
func (t *Txn) Get(key string) causal.Store { return t.at(key).next }

// Put replaces the atoms of a key with a version that mutators have changed.
func (t *Txn) Put(key string, s causal.Store) { t.at(key).next = s }

// Clear removes everything under a key that this replica has seen [R13], and everything that the
// event has added there.
func (t *Txn) Clear(key string) {
	w := t.at(key)
	w.clear(w.before.ResetPrefix("", t.Dot()))
}

// clear replaces the removals on the key by one of everything that this replica has seen there.
func (w *working) clear(empty causal.Store) {
	w.base, w.was, w.next, w.bytes, w.cleared = empty, empty, empty, 0, !w.before.Empty()
}

// manyAtoms is the number of paths from which on removing all of them is sent, and applied, as one
// removal of everything: it names a vector and not the atoms.
const manyAtoms = 1000

func (t *Txn) at(key string) *working {
	if w := t.find(key); w != nil {
		return w
	}
	w := t.open.working(key, t.keys)
	if t.work == nil {
		t.work = t.room[:0]
	}
	t.work = append(t.work, w)
	if t.index != nil {
		t.index[key] = w
	}
	return w
}

// few is the largest number of keys of an update that is searched linearly.
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

// update makes the changes of Modify part of the open event [R5]. After an error nothing has
// changed. If a caller waits for the outcome, the update's event ends here; unless ev.More, so do
// the open events.
func (c *Core) update(ev Update) {
	if ev.Level.Kind != Local && c.cfg.MinMembers < 1 {
		c.answer(ev, ErrMinMembers)
		return
	}
	if c.sealed {
		c.answer(ev, ErrLeft)
		return
	}
	if c.disk.crowded() {
		c.answer(ev, ErrDiskBusy)
		return
	}
	t := new(Txn)
	c.beginTxn(t, c.now)
	if err := t.run(ev.Modify); err != nil {
		c.answer(ev, err)
		return
	}
	c.merge(t)
	c.open.hidden = c.Gathers()
	c.answer(ev, nil)
	if c.outbox.Gathered() > maxUnpushed {
		c.push()
	}
}

// beginTxn makes t the working copy of the next update.
func (c *Core) beginTxn(t *Txn, now time.Time) {
	c.clock = max(c.clock+1, uint64(max(now.UnixMilli(), 0))<<16)
	*t = Txn{open: &c.open, keys: c.keys, fits: c.cfg.Fits, dot: c.open.begin(c.me, c.seen),
		stamp: c.clock}
}

// run calls modify on the working copy and validates its changes.
func (t *Txn) run(modify func(*Txn) error) error {
	if err := modify(t); err != nil {
		return err
	}
	if len(t.work) > 1 {
		slices.SortFunc(t.work, func(a, b *working) int { return strings.Compare(a.key, b.key) })
	}
	for _, w := range t.work {
		if w.next.Empty() && w.before.Len() >= manyAtoms {
			w.clear(w.next)
		}
		var err error
		if w.change, err = causal.BetweenSince(w.was, w.next, t.dot.N-1, t.dot,
			w.change); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
		if err := checkChange(w.key, w.change); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
		if err := w.fits(t.fits); err != nil {
			return err
		}
	}
	return nil
}

// fits counts the bytes that the change adds and takes away, and asks whether there may be so many.
func (w *working) fits(fits func(key string, bytes int) error) error {
	added, gone := 0, 0
	for _, a := range w.change.Adds {
		added += atomBytes(a.Path, a.Leaf)
	}
	for _, a := range w.change.Removes {
		e, _ := w.was.Get(a.Path)
		l, _ := e.Of(a.Replica)
		gone += atomBytes(a.Path, l)
	}
	w.bytes += added - gone
	if fits == nil || added <= gone {
		return nil
	}
	return fits(w.key, w.bytes)
}

// checkChange rejects what a receiver would reject [R21]. The size of a change as a whole is not
// bounded: a change that does not fit into one message or record is sent in parts.
func checkChange(key string, c causal.Change) error {
	if c.Empty() {
		return nil
	}
	for _, a := range c.Adds {
		switch {
		case len(a.Path) == 0 || len(a.Path) > causal.MaxPath:
			return fmt.Errorf("%w: path of %d bytes, limit %d", causal.ErrTooLarge, len(a.Path),
				causal.MaxPath)
		case len(a.Payload) > causal.MaxState:
			return fmt.Errorf("%w: element of %d bytes, limit %d", causal.ErrTooLarge,
				len(a.Payload), causal.MaxState)
		}
	}
	return CheckKey(key)
}

// push sends the own events that have not been pushed to every member, once, as one delta [R7,
// R7a]. A member that the push does not reach, or that has too many unacknowledged bytes, sees the
// gap at the next heartbeat and requests the events.
//
// Own events are gathered until the next input that is not an update. That is a Wake at the latest,
// which NextWake requests at once if nothing has been pushed for a Pause, if the last push had
// few events and all members have acknowledged it, or if a call waits for other members and no call
// of its level waits for a push before the last one. A burst of updates is thus one message per
// member, without atoms that were added and removed within it [R9]. Until own events are pushed,
// no foreign event is applied and nothing is sent that another replica may apply. All events of the
// push therefore follow the same events, and no replica has only some of them.
func (c *Core) push() {
	c.end()
	n := c.seen.Get(c.me)
	from, some := c.outbox.Begin(c.now, n)
	if !some {
		return
	}
	events, ok := c.log.from(c.me, from+1)
	if !ok || !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.replica != 0 }) {
		return
	}
	c.outbox.Sent(len(events))
	d := c.pushOf(events, from, n)
	payload := c.enc.push(&d, c.keys, c.bases.Own())
	clear(d.events)
	if c.events = d.events[:0]; cap(c.events) > maxRoom {
		c.events = nil
	}
	for _, p := range c.peers {
		switch {
		case p.replica == 0:
		case len(payload) > wire.MaxPayload:
			c.sendBeat(p) // shows the gap; the events are then requested and sent in parts
		case p.inFlight+len(payload) <= c.cfg.PushBytes:
			p.inFlight += len(payload)
			p.pushed = append(p.pushed, sent{n, len(payload)})
			c.send(p, wire.ReplicatorPush, payload)
		}
	}
}

// pushOf returns own events as a delta.
func (c *Core) pushOf(events []event, from, n uint64) delta {
	d := delta{head: c.outbox.Causes(c.me, n, c.seen), events: c.events[:0]}
	d.base = d.head.Set(c.me, from)
	d.origin, d.prints = c.me, c.prints.own.behind(from, len(events))
	for _, e := range events {
		d.events = append(d.events, deltaEvent{event: e})
	}
	return d
}

// maxUnpushed bounds the estimated bytes gathered for one push.
const maxUnpushed = wire.MaxPayload / 4
