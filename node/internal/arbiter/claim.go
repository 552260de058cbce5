package arbiter

import "time"

// claim is what a leader knows about one of the leases, or about its probes.
type claim struct {
	op     uint64 // of the last attempt
	trying bool
	tried  time.Time // when the last attempt began
	held   bool
	asked  bool // there has been a result in this contest
	answer Result
	due    time.Time // time of the next attempt
	taken  time.Time // since when every attempt has found it taken; zero: the last one has not
	since  time.Time // since when attempts have been answered, or not answered, as the last one
	away   bool      // answers have been missing so long that leases may have ended
	back   time.Time // when there was an answer again after that; zero: never
}

// begin begins another contest. The end of an outage still counts: the view may have changed since.
func (l *claim) begin() { l.asked, l.answer, l.due = false, Unknown, time.Time{} }

// is reports whether the last result was r.
func (l *claim) is(r Result) bool { return l.asked && l.answer == r }

// attempt reports whether an attempt is due, and numbers it.
func (c *Core) attempt(l *claim) bool {
	if l.trying && c.reached(l.tried.Add(2*c.cfg.Operation())) {
		c.answered(l, Unknown) // the answer is overdue
	}
	if l.trying || !c.reached(l.due) {
		return false
	}
	c.op++
	l.op, l.trying, l.tried = c.op, true, c.now
	c.reached(c.now.Add(2 * c.cfg.Operation()))
	return true
}

func (c *Core) answered(l *claim, r Result) {
	first := !l.asked
	if first || (r == Unknown) != (l.answer == Unknown) {
		if l.since = c.now; r == Unknown {
			l.since = l.tried
		}
	}
	l.trying, l.asked, l.answer, l.due = false, true, r, c.now.Add(c.cfg.Beat())
	switch {
	case r != Taken:
		l.taken = time.Time{}
	case l.taken.IsZero():
		l.taken = c.now
	}
	switch {
	case r == Unknown:
		l.away = l.away || first || c.now.Sub(l.since) >= c.cfg.TTL/2
	case l.away:
		l.away, l.back = false, c.now
	}
}

// onTried processes the result of an attempt. A grant that comes late is released at once.
func (c *Core) onTried(e Tried) {
	for _, l := range []*claim{&c.major, &c.rest} {
		if e.Op == l.op && l.trying {
			c.answered(l, e.Result)
			l.held = e.Result == Held
			return
		}
	}
	if e.Result == Held {
		c.emit(Release{e.Op})
	}
}

func (c *Core) onProbed(e Probed) {
	if e.Op == c.probe.op && c.probe.trying {
		c.answered(&c.probe, e.Result)
	}
}

func (c *Core) onLost(e Lost) {
	for _, l := range []*claim{&c.major, &c.rest} {
		if l.held && e.Op == l.op {
			c.release(l)
			l.asked, l.answer, l.due = true, Unknown, time.Time{}
		}
	}
}

// release gives a lease up, if it is held.
func (c *Core) release(l *claim) {
	if l.held {
		c.emit(Release{l.op})
	}
	l.held = false
}
