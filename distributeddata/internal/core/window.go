package core

// window keeps pushes that arrived before what they follow: a gap, or a cause on its way from another
// replica. It is bounded; what does not fit is dropped, and asked for at the next heartbeat.
type window struct {
	waiting      []waiting
	count, bytes int // bounds
	used         int
}

type waiting struct {
	d    *delta
	size int
}

// keep puts a push into the window; false when it is full or there already.
func (w *window) keep(d *delta, size int) bool {
	for _, o := range w.waiting {
		if o.d.base.Equal(d.base) && o.d.head.Equal(d.head) {
			return true
		}
	}
	if len(w.waiting) >= w.count || w.used+size > w.bytes {
		return false
	}
	w.waiting = append(w.waiting, waiting{d, size})
	w.used += size
	return true
}

// take removes and returns a push for which f says so.
func (w *window) take(f func(*delta) bool) *delta {
	for i, o := range w.waiting {
		if f(o.d) {
			w.waiting = append(w.waiting[:i:i], w.waiting[i+1:]...)
			w.used -= o.size
			return o.d
		}
	}
	return nil
}

// takePush takes a push, or keeps it until what it follows is there [R6].
func (c *Core) takePush(from *peer, d *delta, size int) {
	from.owed = max(from.owed, d.head.Get(from.replica))
	switch {
	case d.head.Leq(c.seen):
	case d.base.Leq(c.seen):
		c.apply(d)
	default:
		c.stats.Waiting++
		if !c.window.keep(d, size) {
			c.stats.WindowDrops++
		}
		c.noteLag(from, d.head)
	}
}

// drainWindow applies what has waited long enough: after each rise of the vector [R6].
func (c *Core) drainWindow() {
	for {
		c.window.take(func(d *delta) bool { return d.head.Leq(c.seen) })
		d := c.window.take(func(d *delta) bool { return d.base.Leq(c.seen) })
		if d == nil {
			return
		}
		if !d.head.Leq(c.seen) {
			c.apply(d)
		}
	}
}
