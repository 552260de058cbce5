package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Txn is the working copy of one update. Nothing is changed unless Modify returns nil.
type Txn struct {
	core  *Core
	dot   causal.Dot
	stamp uint64
	work  []working // by key
}

type working struct {
	key     string
	before  causal.Store // when the update began
	base    causal.Store // what the changes are relative to: blank of atoms once cleared
	next    causal.Store
	cleared bool
}

// Dot returns the event that the update will be.
func (t *Txn) Dot() causal.Dot { return t.dot }

// Stamp returns the hybrid time of the update: 48 bits of milliseconds, 16 bits of a counter. It
// grows with every update of a replica.
func (t *Txn) Stamp() uint64 { return t.stamp }

// Seen returns what the replica has seen before the update.
func (t *Txn) Seen() causal.Vector { return t.core.seen }

// Get returns the atoms of a key as the update has left them so far.
func (t *Txn) Get(key string) causal.Store { return t.at(key).next }

// Put replaces the atoms of a key by what mutators made of them.
func (t *Txn) Put(key string, s causal.Store) { t.at(key).next = s }

// Clear takes away everything under a key that this replica has seen [R8].
func (t *Txn) Clear(key string) {
	w := t.at(key)
	s := w.before
	for path := range w.before.Prefix("") {
		s = s.Reset(path, t.dot)
	}
	w.base, w.next, w.cleared = s, s, !w.before.Empty()
}

func (t *Txn) at(key string) *working {
	i, ok := slices.BinarySearchFunc(t.work, key, func(w working, k string) int { return strings.Compare(w.key, k) })
	if !ok {
		h, _ := t.core.keys.Get(key)
		t.work = slices.Insert(t.work, i, working{key: key, before: h.Store, base: h.Store, next: h.Store})
	}
	return &t.work[i]
}

// update makes one event of what Modify does [R3]. An error leaves everything as it was and uses no
// number, and neither does an update that changes nothing.
func (c *Core) update(ev Update) {
	c.clock = max(c.clock+1, uint64(max(c.now.UnixMilli(), 0))<<16)
	t := &Txn{core: c, dot: causal.Dot{Replica: c.me, N: c.seen.Get(c.me) + 1}, stamp: c.clock}
	e, err := t.run(ev.Modify)
	if err != nil {
		c.emit(Done{ID: ev.ID, Err: err})
		return
	}
	if len(e.keys) > 0 {
		c.commit(t, e)
		if c.unpushed += e.size(); c.unpushed > maxUnpushed {
			c.push()
		}
	}
	c.startWrite(ev)
}

// run returns the event that modify amounts to; one without keys if it changed nothing.
func (t *Txn) run(modify func(*Txn) error) (event, error) {
	e := event{dot: t.dot}
	if err := modify(t); err != nil {
		return e, err
	}
	for _, w := range t.work {
		k, err := w.change(t.dot)
		if err != nil {
			return e, fmt.Errorf("key %q: %w", w.key, err)
		}
		if !k.Empty() {
			e.keys = append(e.keys, k)
		}
		if k.Clear {
			e.deps = t.core.seen
		}
	}
	return e, nil
}

// change returns what was done to the key.
func (w working) change(d causal.Dot) (keyChange, error) {
	diff, err := causal.Between(w.base, w.next, d)
	k := keyChange{key: w.key, Change: diff}
	if !w.cleared {
		return k, err
	}
	k.Clear = true
	for path, m := range w.base.Marks() {
		if m.By == d {
			k.Marks = append(k.Marks, causal.MarkAt{Path: path, Mark: m})
		}
	}
	return k, err
}

// commit makes the working copy the state.
func (c *Core) commit(t *Txn, e event) {
	for _, k := range e.keys {
		c.put(k.key, t.at(k.key).next)
	}
	c.log.add(e)
	c.seen = c.seen.With(e.dot)
	c.stats.Events++
}

// push sends the own events that have not been pushed to every member, once, as one delta [R7, R7a].
// Whom it does not reach, or who has too much unacknowledged already, sees the gap at the next
// heartbeat and asks.
//
// Own events are gathered until the next event that is not an update: a wake, at the latest, which
// NextWake asks for at once. So a burst of updates is one message per member. Nothing of others is
// applied, and no vector is told to anybody, before they are pushed: what they follow is then the same
// for all of them, and nobody asks for what is about to come.
func (c *Core) push() {
	from, n := c.pushed, c.seen.Get(c.me)
	if from == n {
		return
	}
	c.pushed, c.unpushed = n, 0
	events, ok := c.log.from(c.me, from+1)
	if !ok || !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.replica != 0 }) {
		return
	}
	payload := encodePush(c.pushOf(events, from, n), c.me, c.keys)
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

// pushOf returns own events as a delta. It names of what they follow only what earlier pushes have not
// named: who has seen our event before these has seen the rest.
func (c *Core) pushOf(events []event, from, n uint64) *delta {
	var news []causal.Dot
	for d := range c.seen.All() {
		if d.Replica != c.me && d.N > c.told.Get(d.Replica) {
			news = append(news, d)
		}
	}
	c.told = c.seen
	d := &delta{events: make([]deltaEvent, len(events))}
	d.head = causal.MakeVector(append(news, causal.Dot{Replica: c.me, N: n})...)
	d.base = d.head.Set(c.me, from)
	for i, e := range events {
		d.events[i].event = e
	}
	return d
}

// maxUnpushed bounds what is gathered for one push, in estimated bytes.
const maxUnpushed = wire.MaxPayload / 4

// acknowledged notes that p covers our events up to n.
func (p *peer) acknowledged(n uint64) {
	p.acked = max(p.acked, n)
	i := 0
	for ; i < len(p.pushed) && p.pushed[i].n <= n; i++ {
		p.inFlight -= p.pushed[i].size
	}
	p.pushed = p.pushed[i:]
}
