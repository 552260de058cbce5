package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// window keeps pushes that arrived before their causes: after a gap, or before an event of another
// replica. It is bounded. A push that does not fit is dropped, and its events are requested at the
// next heartbeat.
type window struct {
	waiting      []waitingPush
	count, bytes int // bounds
	used         int
}

type waitingPush struct {
	d     *history.Delta
	size  int
	until time.Time // after that time its causes are no longer in flight, and may be nowhere
}

// keep adds a push to the window and returns true, also if the push is there already. It returns
// false if the window is full.
func (w *window) keep(d *history.Delta, size int, until time.Time) bool {
	for _, o := range w.waiting {
		if o.d.Base.Equal(d.Base) && o.d.Head.Equal(d.Head) {
			return true
		}
	}
	if len(w.waiting) >= w.count || w.used+size > w.bytes {
		return false
	}
	w.waiting = append(w.waiting, waitingPush{d, size, until})
	w.used += size
	return true
}

// expire drops the pushes that have waited for too long [R43]: their causes may have been lost with
// the members that had them. Dropped events are requested if any member has them.
func (w *window) expire(now time.Time) (dropped uint64) {
	for w.take(func(o waitingPush) bool { return !now.Before(o.until) }) != nil {
		dropped++
	}
	return dropped
}

// take removes and returns a push for which f returns true, or nil.
func (w *window) take(f func(waitingPush) bool) *history.Delta {
	for i, o := range w.waiting {
		if f(o) {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			w.used -= o.size
			return o.d
		}
	}
	return nil
}

// inbox takes the pushes of other members, and applies them in causal order.
type inbox struct {
	cluster
	window *window
	in     *intake
	outbox *pushes
}

func (c *Core) inbox() inbox { return inbox{c.cluster(), &c.window, &c.in, &c.outbox} }

func (c inbox) onPush(p *peer, payload []byte) error {
	d, err := decodePush(payload, p.replica, c.bases.find(c.now))
	if err != nil {
		return err
	}
	if !c.heard(p, d.Head) {
		return nil
	}
	c.take(p, d, len(payload))
	return nil
}

// take applies a push, or keeps it until its causes have arrived [R7].
func (c inbox) take(from *peer, d *history.Delta, size int) {
	if !c.sameHistory(d) {
		return
	}
	from.owed = max(from.owed, d.Head.Get(from.replica))
	switch {
	case d.Head.Leq(c.Seen()):
	case d.Torn(c.Seen()):
		c.stats.Forks++
		c.in.Behind(c.now, d.Head, from.ID)
	case d.Base.Leq(c.Seen()):
		c.apply(d)
	default:
		c.stats.Waiting++
		if !c.window.keep(d, size, c.now.Add(c.cfg.Patience)) {
			c.stats.WindowDrops++
		}
		c.in.Behind(c.now, d.Head, from.ID)
	}
}

// apply applies a push. Later own pushes need not name its causes [R8].
func (c inbox) apply(d *history.Delta) {
	c.note(c.history.ApplyPush(d), c.Seen(), c.bases)
	c.outbox.Applied(d.Base)
}

// drain applies the waiting pushes whose causes are covered. It is called after each rise of the
// vector [R7].
func (c inbox) drain() {
	c.stats.WindowDrops += c.window.expire(c.now)
	for {
		c.window.take(func(o waitingPush) bool { return o.d.Head.Leq(c.Seen()) })
		d := c.window.take(func(o waitingPush) bool { return o.d.Base.Leq(c.Seen()) })
		if d == nil {
			return
		}
		if !d.Head.Leq(c.Seen()) && !d.Torn(c.Seen()) && c.sameHistory(d) {
			c.apply(d)
		}
	}
}

// sameHistory reports whether a push continues or repeats the events that this replica has of its
// origin, as far as is known. If not, one of the two histories is that of a restored snapshot, and
// sameHistory notifies the origin.
func (c inbox) sameHistory(d *history.Delta) bool {
	if c.history.Continues(d) {
		return true
	}
	c.stats.Forks++
	if p := c.peers.at(d.Origin); p != nil {
		c.sendAck(p)
	}
	return false
}
