package membership

import (
	"slices"
	"time"
)

// stepDown requests a permit from the first of the members in conflict with us, if it is before us.
func (c *core) stepDown(now time.Time) {
	c.permits.forget(now)
	first := c.first(now)
	if first == nil || !first.rank().before(c.rank()) || !c.permits.mayAsk(now) {
		return
	}
	c.sequence++
	h := c.compose(first.address, first.id, c.roster.peers[first.id] != nil, true)
	h.yield = true
	c.permits.ask(request{first.id, first.incarnation, c.sequence, now})
	c.emit(send{first.address, first.incarnation, h})
}

// first returns the first in order of the members that have been in conflict with us for long
// enough. If most of our view disowns us, we need no patience.
func (c *core) first(now time.Time) (first *other) {
	if c.leaving || len(c.permits.given) > 0 {
		return nil
	}
	for _, o := range c.conflicts.by {
		ripe := c.disowned ||
			now.Sub(o.since) >= c.conflicts.patienceFor(o) && c.settled(now, c.viewAt, o)
		if o.hello.size == 0 || !ripe || c.unrelated(o) {
			continue
		}
		if first == nil || o.rank().before(first.rank()) {
			first = o
		}
	}
	return first
}

// unrelated reports whether neither member has ever listed the other. In that case no id is banned,
// so a new one would not help: the provider has to find them, or they belong to two clusters with
// one name. For a stranger we know only our own side, whatever it claims.
func (c *core) unrelated(o *other) bool {
	switch {
	case c.roster.peers[o.id] != nil:
		return false
	case !c.familiar(o.address, o.hello.proof):
		return true
	}
	return !o.certain && !o.hello.listsYou
}

// settled reports whether our view has not changed since at, and that is longer ago than patience,
// so that members which rejoined after stepping down are counted everywhere. In a cluster that
// never settles, evidence ten times as old is sufficient.
func (c *core) settled(now, at time.Time, o *other) bool {
	return now.Sub(at) >= c.patience || now.Sub(o.since) >= 10*c.conflicts.patienceFor(o)
}

// onRequest processes permits and requests for permits in a hello.
func (c *core) onRequest(now time.Time, r received, listed bool) {
	if r.to != c.incarnation {
		return
	}
	switch h := r.hello; {
	case h.yield:
		c.consider(now, r, listed)
	case h.permit != 0:
		c.permitted(now, r)
	case h.declined != 0:
		c.permits.decline(r)
	}
}

// consider gives a permit to a member that asks to step down for us, if we are before it and will
// stay. A member that requests a permit itself gives none, since it may leave with the next
// message.
func (c *core) consider(now time.Time, r received, listed bool) {
	h := r.hello
	i := c.permits.of(r)
	o := c.conflicts.by[r.member]
	asker := rank{h.claim, h.stamp, r.member}
	switch {
	case c.leaving || c.permits.asking() || o == nil:
		return
	case !c.settled(now, c.viewAt, o) &&
		!(c.settled(now, c.surprisedAt, o) && c.rankWithoutReturned(now).before(asker)):
		return
	case listed && h.listsYou:
		return // the conflict is over
	case !c.rank().before(asker):
		return
	case i < 0 && len(c.permits.given) >= c.most():
		return
	case i < 0 && !c.mayPermit(now, h):
		return
	}
	c.sequence++
	p := permit{r.member, h.address, r.from, c.sequence, now.Add(c.permitFor)}
	if i < 0 {
		c.permits.given = append(c.permits.given, p)
		c.emit(noted{permitGiven, c.memberOf(r)})
	} else {
		if !c.familiar(h.address, h.proof) {
			p.until = c.permits.given[i].until
		}
		c.permits.given[i] = p
	}
	answer := c.compose(h.address, r.member, listed, false)
	answer.permit = h.sequence
	c.emit(send{h.address, r.from, answer})
}

// rankWithoutReturned returns our rank as it was before members came back with our permit. The
// asker may not list them yet, and may be before us when it does.
func (c *core) rankWithoutReturned(now time.Time) rank {
	r := c.rank()
	for _, p := range c.roster.order {
		if p.since.After(c.surprisedAt) && now.Sub(p.since) < c.patience && r.size > 1 {
			r.size--
		}
	}
	return r
}

// most returns for how many members we wait at once: so many that at least half of those that run
// stay, but few of a large cluster.
func (c *core) most() int {
	n := int(min(c.claim().size, 1<<20))
	return max(min(n, c.together), (n+3)/4)
}

// mayPermit limits permits for strangers. A member that we have never listed may have to step down,
// but the holder of a permit keeps us from stepping down.
func (c *core) mayPermit(now time.Time, h hello) bool {
	return c.familiar(h.address, h.proof) || c.permits.forStranger(now)
}

// permitted ends our incarnation if the permit answers a recent request of ours and nothing has
// changed since. Otherwise it declines the permit, so that the giver is free again.
func (c *core) permitted(now time.Time, r received) {
	h := r.hello
	_, conflict := c.conflicts.by[r.member]
	if c.permits.asked(now, r) && conflict && !c.leaving && len(c.permits.given) == 0 &&
		(rank{h.claim, h.stamp, r.member}).before(c.rank()) {
		cause := ErrSteppedDown
		if c.disowned {
			cause = ErrExpelled
		}
		c.emit(noted{permitTaken, c.memberOf(r)})
		c.sayGoodbye() // so that our fragment no longer counts us
		c.remove(cause)
		return
	}
	c.sequence++
	answer := c.compose(h.address, r.member, c.roster.peers[r.member] != nil, false)
	answer.declined = h.sequence
	c.emit(send{h.address, r.from, answer})
}

// fulfil removes expired permits, and permits of members that have rejoined with a new id at the
// same address.
func (c *core) fulfil(now time.Time) {
	c.permits.expire(now, func(p permit) bool {
		return slices.ContainsFunc(c.roster.order, func(o *peer) bool {
			return o.Address == p.address && o.ID != p.id
		})
	})
}

// leave begins a graceful leave. Other members then do not ask for us.
func (c *core) leave() {
	c.leaving = true
	if c.up {
		c.sayGoodbye()
	}
}

// sayGoodbye informs all members that we list, or are in conflict with, that this incarnation ends.
func (c *core) sayGoodbye() {
	for _, p := range c.roster.order {
		c.sequence++
		h := c.compose(p.Address, p.ID, true, false)
		h.leaving = true
		c.emit(send{p.Address, p.incarnation, h})
	}
	for _, l := range c.lost.all {
		if o := c.conflicts.at(l.address); o != nil && c.roster.peers[o.id] == nil {
			c.sequence++
			h := c.compose(o.address, o.id, false, false)
			h.leaving = true
			c.emit(send{o.address, o.incarnation, h})
		}
	}
}
