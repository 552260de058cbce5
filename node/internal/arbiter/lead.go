package arbiter

import (
	"fmt"
	"time"
)

// lead decides as the leader, the oldest member of the view.
func (c *Core) lead() {
	if c.n == 0 { // so many members see each other before one of them serves: see Config.Members
		c.assumed, c.founded = true, false
		c.count(2*c.cfg.Members - 1)
	}
	if !c.hasMajority() {
		c.leadRest()
		return
	}
	c.contest, c.apart, c.probe.away = time.Time{}, false, false
	alone := c.alone()
	if alone && !c.rest.held && c.reached(c.major.due) && c.attempt(&c.rest) {
		c.emit(Try{c.rest.op, Rest})
	}
	c.assumed = c.assumed && !(c.founded && !c.missing())
	if c.major.held && c.missing() && c.reached(c.viewAt.Add(c.patience())) {
		c.assumed = false
		c.count(len(c.view.Members))
	}
	if !c.major.held && (!alone || c.rest.held) && c.attempt(&c.major) {
		c.emit(Try{c.major.op, Majority})
	}
	c.founded = c.founded || c.major.held // nobody else hosts: this is the beginning of the cluster
	if len(c.leaving) > 0 {
		c.assumeNone()
	}
	if !c.alone() {
		c.release(&c.rest)
	}
	switch {
	case c.known() == 0 && (c.major.is(Taken) || alone && c.rest.is(Taken)):
		if !c.major.trying {
			c.release(&c.rest)
		}
		c.rule(Elsewhere, "just started, and another side of the cluster hosts")
	case c.known() == 0 && (c.major.asked || c.rest.is(Unknown)):
		c.rule(Undecided, "just started, and the lease store does not answer")
	case c.known() == 0:
		c.rule(Undecided, "just started")
	case !c.major.taken.IsZero() && c.reached(c.major.taken.Add(c.cfg.lives())):
		// The holder lives, and another side counts fewer members than this one: see rebase.
		c.rule(Yielding, yielding)
	case !c.missing():
		c.rule(Whole, "")
	case c.major.held:
		c.rule(Ours, "")
	default:
		c.rule(Pending, "")
	}
}

// alone reports whether this member has just started, and one member is enough to begin a cluster:
// it has no majority then of the members that may run elsewhere. It acquires both leases, so that
// it begins no cluster beside a side that hosts without a majority.
func (c *Core) alone() bool { return c.known() == 0 && c.cfg.Members == 1 }

// founds helps a leader that has just started and does not reach the store: a member that does
// acquires Majority in its place, and tells it how many members there are. It keeps the lease until
// the leader knows. Where one member is enough to begin, it does not, since that takes both leases.
func (c *Core) founds() bool {
	waits := max(c.cfg.TTL, joining)
	if c.unnumbered.IsZero() || len(c.view.Members) < c.cfg.Members || c.cfg.Members == 1 ||
		!c.reached(c.unnumbered.Add(waits)) || !c.reached(c.viewAt.Add(waits)) {
		return false
	}
	if c.known() == 0 && !c.major.held && c.attempt(&c.major) {
		c.emit(Try{c.major.op, Majority})
	}
	if c.known() == 0 && c.major.held { // the view has not changed for long: this is all of them
		c.assumed = false
		c.count(len(c.view.Members))
	}
	if c.known() > 0 && c.reached(c.beat) {
		c.beat = c.now.Add(c.cfg.Beat())
		c.emit(Send{[]string{c.view.Oldest}, Verdict{Kind: Pending, Members: c.n}})
	}
	c.reached(c.beat)
	return true
}

// patience returns how long the view of a majority must be unchanged before the members that are
// missing are not counted any more.
func (c *Core) patience() time.Duration {
	if c.assumed {
		return joining
	}
	return rebase
}

const yielding = "another side of the cluster counts fewer members, has a majority of them, and hosts"

// leadRest decides as the leader of a side without a majority. It hosts if it gets the lease of the
// rest while nobody holds that of the majority.
func (c *Core) leadRest() {
	if c.contest.IsZero() {
		c.contest = c.now
		c.probe.begin()
		c.rest.begin()
		c.reachable = false
	}
	if !c.apart {
		c.apart, c.answers = true, time.Time{}
		c.unsure = c.now.Sub(c.served) > c.cfg.TTL/2
	}
	c.release(&c.major)
	if c.attempt(&c.probe) {
		c.emit(Probe{c.probe.op})
	}
	if c.rest.held && c.probe.is(Taken) { // a majority is back
		c.release(&c.rest)
	}
	if !c.rest.held && c.probe.is(Held) && c.reached(c.turn()) && c.attempt(&c.rest) {
		c.emit(Try{c.rest.op, Rest})
	}
	early := !c.begun && c.known() == 0
	if early { // it only finds out whether another side has this lease
		c.release(&c.rest)
	}
	c.reachable = c.reachable || c.probe.is(Held) || c.probe.is(Taken)
	if c.reachable && c.answers.IsZero() {
		c.answers = c.now
	}
	half := 2*len(c.view.Members) == c.n && c.probe.is(Held) && !c.rest.asked
	switch {
	case c.rest.held:
		c.rule(Ours, "")
	case c.probe.is(Taken) || c.rest.is(Taken):
		c.rule(Elsewhere, c.cutOff("another side hosts"))
	case c.kind.open() && (half || !c.reachable && !c.reached(c.contest.Add(c.cfg.TTL))):
		// Without the store nothing can be given up: what is held goes on until its leases end.
		c.rule(Pending, "")
	case !c.reachable && c.probe.asked:
		c.rule(Undecided, c.cutOff("the lease store does not answer"))
	case early:
		c.rule(Undecided, c.cutOff("fewer do not begin a cluster"))
	default:
		c.rule(Undecided, c.cutOff("it is not known yet which side hosts"))
	}
}

// turn returns when this side may try to host, while the store answers. A store that answers again
// after an outage answers every side: a majority, whose lease may have ended, has a TTL to acquire
// it. So it has if this member does not know whether there was an outage: it has just started, or
// has followed another one on a side without a majority.
func (c *Core) turn() time.Time {
	turn, back := c.probe.since.Add(c.cfg.delay(len(c.view.Members), c.n)), c.probe.back
	if c.unsure && back.Before(c.answers) {
		back = c.answers
	}
	if waits := back.Add(c.cfg.TTL); !back.IsZero() && waits.After(turn) {
		return waits
	}
	return turn
}

// cutOff describes a side without a majority.
func (c *Core) cutOff(then string) string {
	if c.known() == 0 {
		return fmt.Sprintf("just started with %d members, and %d are a majority; %s",
			len(c.view.Members), c.n/2+1, then)
	}
	return fmt.Sprintf("this member is cut off: it sees %d of %d members, which is not a "+
		"majority; %s", len(c.view.Members), c.n, then)
}

// follow decides as a member that is not the leader.
func (c *Core) follow() {
	c.contest, c.apart = time.Time{}, false
	if !c.heard.IsZero() && !c.founds() { // to the leader of both members
		c.release(&c.major)
	}
	if !c.heard.IsZero() || c.known() == 0 {
		c.release(&c.rest)
	}
	told := c.verdict
	lasts := c.cfg.Lapse()
	if told == Whole {
		lasts += c.cfg.idle()
	}
	if !c.heard.IsZero() && c.reached(c.heard.Add(lasts)) {
		told = 0
	}
	if told != 0 && c.otherStore() {
		c.rule(Undecided, otherStoreWhy)
		return
	}
	switch {
	case c.majority() && told == Yielding && c.kind.open() &&
		!c.reached(c.viewAt.Add(c.cfg.handed())):
		// It did not see this side while it found another one that hosts: that may be this one.
		c.rule(c.kind, c.why)
	case c.majority() && told == Yielding, c.majority() && told == Elsewhere &&
		c.reached(c.elsewhere.Add(c.cfg.lives())):
		// The leader has just started and may not know how many members there are; but it has found
		// a side that hosts, and that lives.
		c.rule(Yielding, yielding)
	case c.majority() && !c.missing():
		c.rule(Whole, "")
	case c.majority() && told == Ours:
		c.rule(Ours, "")
	case c.majority():
		c.rule(Pending, "")
	case c.rest.held:
		c.rule(Ours, "")
	case told.open():
		c.rule(told, "")
	case c.known() == 0:
		c.rule(Undecided, "the oldest member has not announced yet how many members there are")
	case told == 0 && c.kind.open() && !c.reached(c.viewAt.Add(c.cfg.Lapse())):
		c.rule(Pending, "") // until the leader of this side has announced its verdict
	case told == Elsewhere:
		c.rule(Elsewhere, c.cutOff("another side hosts"))
	default:
		c.rule(Undecided, c.cutOff("it is not known yet which side hosts"))
	}
}

// majority reports whether this member knows that its side has a majority.
func (c *Core) majority() bool { return c.known() > 0 && c.hasMajority() }
