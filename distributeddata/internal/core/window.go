package core

import "time"

// window keeps pushes that arrived before what they follow: a gap, or a cause on its way from another
// replica. It is bounded; what does not fit is dropped, and asked for at the next heartbeat.
type window struct {
	waiting      []waiting
	count, bytes int // bounds
	used         int
}

type waiting struct {
	d     *delta
	size  int
	until time.Time // what it follows is not on its way any more, and may be nowhere
}

// keep puts a push into the window; false when it is full or there already.
func (w *window) keep(d *delta, size int, until time.Time) bool {
	for _, o := range w.waiting {
		if o.d.base.Equal(d.base) && o.d.head.Equal(d.head) {
			return true
		}
	}
	if len(w.waiting) >= w.count || w.used+size > w.bytes {
		return false
	}
	w.waiting = append(w.waiting, waiting{d, size, until})
	w.used += size
	return true
}

// expire drops the pushes that have waited for too long [R55]: what they follow may have died with those
// who had it. What is dropped is asked for, if anybody has it.
func (w *window) expire(now time.Time) (dropped uint64) {
	for w.take(func(o waiting) bool { return !now.Before(o.until) }) != nil {
		dropped++
	}
	return dropped
}

// take removes and returns a push for which f says so.
func (w *window) take(f func(waiting) bool) *delta {
	for i, o := range w.waiting {
		if f(o) {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			w.used -= o.size
			return o.d
		}
	}
	return nil
}

// takePush takes a push, or keeps it until what it follows is there [R6].
func (c *Core) takePush(from *peer, d *delta, size int) {
	if !c.sameHistory(d) {
		return
	}
	from.owed = max(from.owed, d.head.Get(from.replica))
	switch {
	case d.head.Leq(c.seen):
	case d.torn(c.seen):
		c.stats.Forks++
		c.noteLag(from, d.head)
	case d.base.Leq(c.seen):
		c.applyPush(d)
	default:
		c.stats.Waiting++
		if !c.window.keep(d, size, c.now.Add(c.cfg.Patience)) {
			c.stats.WindowDrops++
		}
		c.noteLag(from, d.head)
	}
}

// applyPush applies a push. What it follows does not have to be named beside it [R7a].
func (c *Core) applyPush(d *delta) {
	c.note(c.apply(d))
	c.learnPrints(d)
	c.implied = c.implied.Join(d.base)
}

// drainWindow applies what has waited long enough: after each rise of the vector [R6].
func (c *Core) drainWindow() {
	c.stats.WindowDrops += c.window.expire(c.now)
	for {
		c.window.take(func(o waiting) bool { return o.d.head.Leq(c.seen) })
		d := c.window.take(func(o waiting) bool { return o.d.base.Leq(c.seen) })
		if d == nil {
			return
		}
		if !d.head.Leq(c.seen) && !d.torn(c.seen) && c.sameHistory(d) {
			c.applyPush(d)
		}
	}
}
