package membership

import (
	"slices"
	"time"
)

// permit is our promise to stay until another member, that gives way, is back.
type permit struct {
	id, address string
	incarnation uint64
	sequence    uint64 // of the hello that carried it last
	until       time.Time
}

// request is a hello that asked for a permit.
type request struct {
	id          string
	incarnation uint64
	sequence    uint64
	at          time.Time
}

// giveWay asks the first of all with which we are in conflict for a permit, if it is before us.
func (c *core) giveWay(now time.Time) {
	c.requests = slices.DeleteFunc(c.requests, func(r request) bool { return now.Sub(r.at) > c.roundTrip })
	first := c.first(now)
	if first == nil || !first.rank().before(c.rank()) || now.Sub(c.askedAt) < c.retry {
		return
	}
	c.askedAt = now
	c.sequence++
	h := c.compose(first.id, c.peers[first.id] != nil, true)
	h.yield = true
	c.requests = append(c.requests, request{first.id, first.incarnation, c.sequence, now})
	c.emit(send{first.address, first.incarnation, h})
}

// first returns the first in order of those with which we are in conflict for long enough. A member
// that most of its view disowns needs no more patience.
func (c *core) first(now time.Time) (first *other) {
	if c.leaving || len(c.permits) > 0 {
		return nil
	}
	for _, o := range c.others {
		ripe := c.disowned || now.Sub(o.since) >= c.patienceFor(o) && c.settled(now, o)
		if o.hello.size == 0 || !ripe || c.unrelated(o) {
			continue
		}
		if first == nil || o.rank().before(first.rank()) {
			first = o
		}
	}
	return first
}

// unrelated tells whether neither has ever listed the other. No id is banned then, so a new one
// would not help: the provider has to find them, or they are two clusters of one name. Of a stranger
// only we know that, whatever it says; but who sees nobody else has nothing to lose by believing it.
func (c *core) unrelated(o *other) bool {
	switch {
	case c.peers[o.id] != nil:
		return false
	case !c.familiar(o.address):
		return len(c.peers) > 0 || !o.hello.listsYou
	}
	return !o.certain && !o.hello.listsYou
}

// familiar tells whether we list an address, or have listed it, or a member at such an address has
// named it. Anybody else that says hello is a stranger: what it says of us and of itself has no
// second source.
func (c *core) familiar(address string) bool {
	return c.lists(address) || c.lostAt(address) != nil
}

// settled tells whether our view has not changed for as long as patience: then those that came back
// after they gave way are counted everywhere. In a cluster that never comes to rest, evidence ten
// times as old is enough.
func (c *core) settled(now time.Time, o *other) bool {
	return now.Sub(c.viewAt) >= c.patience || now.Sub(o.since) >= 10*c.patienceFor(o)
}

// onRequest handles what a hello asks for or grants beyond what it says.
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
		c.permits = slices.DeleteFunc(c.permits, func(p permit) bool {
			return p.id == r.member && p.incarnation == r.from && p.sequence == h.declined
		})
	}
}

// consider gives a permit to a member that asks to give way to us, if we are before it and are
// going to stay. What asks for a permit itself gives none: it may go with the next message.
func (c *core) consider(now time.Time, r received, listed bool) {
	h := r.hello
	i := slices.IndexFunc(c.permits, func(p permit) bool { return p.id == r.member && p.incarnation == r.from })
	most := (int(min(c.claim().size, 1<<20)) + 3) / 4
	o := c.others[r.member]
	switch {
	case c.leaving || len(c.requests) > 0 || o == nil || !c.settled(now, o):
		return
	case listed && h.listsYou:
		return // there is no conflict any more
	case !c.rank().before(rank{h.claim, h.stamp, r.member}):
		return
	case i < 0 && len(c.permits) >= most:
		return
	case i < 0 && !c.mayPermit(now, h.address):
		return
	}
	c.sequence++
	p := permit{r.member, h.address, r.from, c.sequence, now.Add(c.permitFor)}
	if i < 0 {
		c.permits = append(c.permits, p)
		c.emit(noted{permitGiven, c.memberOf(r)})
	} else {
		if !c.familiar(h.address) {
			p.until = c.permits[i].until
		}
		c.permits[i] = p
	}
	answer := c.compose(r.member, listed, false)
	answer.permit = h.sequence
	c.emit(send{h.address, r.from, answer})
}

// mayPermit bounds permits for strangers: a member that we have never listed may have to give way, but
// whoever holds a permit keeps us from doing so. They get one at a time, for a quarter of the time.
func (c *core) mayPermit(now time.Time, address string) bool {
	if c.familiar(address) {
		return true
	}
	if len(c.permits) > 0 || now.Sub(c.strangerAt) < 4*c.permitFor {
		return false
	}
	c.strangerAt = now
	return true
}

// permitted ends our life if the permit answers a request of ours, sent moments ago, and nothing
// has changed since. Otherwise it is declined, so that the giver is free again.
func (c *core) permitted(now time.Time, r received) {
	h := r.hello
	valid := slices.ContainsFunc(c.requests, func(q request) bool {
		return q.id == r.member && q.incarnation == r.from && q.sequence == h.permit && now.Sub(q.at) <= c.roundTrip
	})
	_, conflict := c.others[r.member]
	if valid && conflict && !c.leaving && len(c.permits) == 0 && (rank{h.claim, h.stamp, r.member}).before(c.rank()) {
		cause := ErrGaveWay
		if c.disowned {
			cause = ErrExpelled
		}
		c.emit(noted{permitTaken, c.memberOf(r)})
		c.sayGoodbye() // our fragment does not count us any more
		c.remove(cause)
		return
	}
	c.sequence++
	answer := c.compose(r.member, c.peers[r.member] != nil, false)
	answer.declined = h.sequence
	c.emit(send{h.address, r.from, answer})
}

// fulfil ends permits of members that are back, as other members at the same address, and those
// that are over.
func (c *core) fulfil(now time.Time) {
	c.permits = slices.DeleteFunc(c.permits, func(p permit) bool {
		back := slices.ContainsFunc(c.order, func(o *peer) bool { return o.Address == p.address && o.ID != p.id })
		return back || !now.Before(p.until)
	})
}

// leave begins to leave in order. Nobody asks for us then.
func (c *core) leave() {
	c.leaving = true
	if c.up {
		c.sayGoodbye()
	}
}

// sayGoodbye tells all that we list, or are in conflict with, that this life ends.
func (c *core) sayGoodbye() {
	for _, p := range c.order {
		c.sequence++
		h := c.compose(p.ID, true, false)
		h.leaving = true
		c.emit(send{p.Address, p.incarnation, h})
	}
	for _, l := range c.lost {
		if o := c.otherAt(l.address); o != nil && c.peers[o.id] == nil {
			c.sequence++
			h := c.compose(o.id, false, false)
			h.leaving = true
			c.emit(send{o.address, o.incarnation, h})
		}
	}
}
