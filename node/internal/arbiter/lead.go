package arbiter

import "time"

// lead decides as the leader, the oldest member of the view.
func (c *Core) lead() {
	c.verdict = 0
	switch {
	case c.whole && (c.kind == Whole || c.reached(c.since.Add(c.cfg.Settle))):
		c.surrender()
		c.contest = time.Time{}
		c.rule(Whole, "")
	case c.held != 0:
		c.contest, c.releaseAt = time.Time{}, time.Time{}
		c.rule(Ours, "")
	case c.whole: // the decision stays until the view has settled
		c.contest = time.Time{}
	case c.kind == Whole && !c.reached(c.since.Add(c.cfg.Hold)):
	default:
		c.try()
	}
	c.verdict = c.kind // in case an older member leads from now on
}

// try tries to acquire the lease when it is this side's turn.
func (c *Core) try() {
	if c.contest.IsZero() {
		c.contest, c.asked, c.due = c.now, false, time.Time{}
	}
	if c.trying && c.reached(c.tried.Add(c.cfg.Operation)) {
		c.onTried(Tried{Op: c.op})
	}
	switch size := len(c.view.Members); {
	case c.asked && c.answer == Taken:
		c.rule(Elsewhere, reason(Elsewhere))
	case !c.asked && c.kind.open() && 2*size > c.n:
		c.rule(Pending, "")
	default:
		c.rule(Undecided, reason(Undecided))
	}
	turn := c.contest.Add(c.cfg.delay(len(c.view.Members), c.n))
	if c.due.After(turn) {
		turn = c.due
	}
	if !c.trying && c.reached(turn) {
		c.op++
		c.trying, c.tried = true, c.now
		c.emit(Try{c.op})
		c.reached(c.now.Add(c.cfg.Operation))
	}
}

// onTried processes the result of an attempt. A grant that is no longer needed is released at once,
// or later by lead or follow.
func (c *Core) onTried(e Tried) {
	if e.Op != c.op || !c.trying && e.Result != Held || c.held != 0 {
		if e.Result == Held && e.Op != c.held {
			c.emit(Release{e.Op})
		}
		return
	}
	c.trying, c.asked, c.answer, c.due = false, true, e.Result, c.now.Add(c.cfg.Retry)
	if e.Result != Held {
		return
	}
	c.held = e.Op
	if c.n == 0 {
		c.count(len(c.view.Members))
	}
}

// onLost starts another contest, without a delay because this side was hosting.
func (c *Core) onLost(e Lost) {
	if e.Op != c.held || c.held == 0 {
		return
	}
	c.release()
	c.contest, c.asked, c.answer, c.due = c.now.Add(-c.cfg.Delay), true, Unknown, time.Time{}
}

// surrender releases the lease once no member assumes any more that this one holds it.
func (c *Core) surrender() {
	if c.held == 0 {
		return
	}
	if c.releaseAt.IsZero() {
		c.releaseAt = c.now.Add(c.cfg.Lapse)
	}
	if c.reached(c.releaseAt) {
		c.release()
	}
}

func (c *Core) release() {
	if c.held != 0 {
		c.emit(Release{c.held})
	}
	c.held, c.releaseAt = 0, time.Time{}
}
