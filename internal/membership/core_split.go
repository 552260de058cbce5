package membership

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// claim describes a member's fragment. With the member's stamp and id it determines which member
// stays after a split.
type claim struct {
	size     uint64 // members of its view that list it, and itself; 0: no such protocol
	oldest   uint64 // smallest stamp of these members
	mark     uint64 // hash of the oldest's id, since joint starts give equal stamps
	arbiter  bool   // a member of its fragment holds the arbiter lease
	disowned bool   // more than half of the members it lists deny it
}

// rank is the position of one member in the order of all.
type rank struct {
	claim
	stamp uint64
	id    string
}

// before is a strict total order: first the fragment of the arbiter's holder, then the larger
// fragment, then members that are not disowned, then the fragment with the older oldest member,
// then the older member, then the smaller id.
func (r rank) before(o rank) bool {
	return cmp.Or(
		truth(o.arbiter, r.arbiter),
		cmp.Compare(o.size, r.size),
		truth(r.disowned, o.disowned),
		cmp.Compare(age(r.oldest), age(o.oldest)),
		cmp.Compare(r.mark, o.mark),
		cmp.Compare(age(r.stamp), age(o.stamp)),
		strings.Compare(r.id, o.id),
	) < 0
}

// truth compares booleans, with false before true.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// age returns the stamp for comparison: an unknown stamp is the youngest.
func age(stamp uint64) uint64 {
	if stamp == 0 {
		return math.MaxUint64
	}
	return stamp
}

// other is a running member of our cluster in conflict with us: it does not list us, or we do not
// list it. It has answered us, so both directions work.
type other struct {
	id, address string
	incarnation uint64
	hello       hello     // the last one
	since       time.Time // since when there is evidence
	heard       time.Time
	named       time.Time // when it was last sent the members that we list
	told        bool      // the split has been reported
	polled      bool      // all of our view have been asked whether they list us
	certain     bool      // one has dropped the other, and never lists it again
}

func (o *other) member() Member {
	return Member{ID: o.id, Address: o.address, Incarnation: o.incarnation, Stamp: o.hello.stamp}
}

func (o *other) rank() rank { return rank{o.hello.claim, o.hello.stamp, o.id} }

// weigh evaluates what a hello says about a split. The hello counts only if it names this
// incarnation, which shows that its sender has heard from us.
func (c *core) weigh(now time.Time, r received, listed bool) {
	h := r.hello
	if listed && h.listsYou {
		c.agree(r.member)
		return
	}
	if r.to != c.incarnation || h.size == 0 && !listed {
		return
	}
	o := c.others[r.member]
	if o == nil || o.incarnation != r.from {
		if o == nil && !c.roomFor(h) {
			return
		}
		o = &other{id: r.member, incarnation: r.from, since: now}
		c.others[r.member], c.mine = o, nil
		c.emit(noted{evidence, c.memberOf(r)})
	}
	if certain := h.droppedYou || c.hasDropped(r.member); certain && !o.certain {
		o.certain, o.since = true, now
	}
	if !o.polled && (o.certain || now.Sub(o.since) >= c.patience) {
		o.polled = true
		c.poll(now)
	}
	o.address, o.hello, o.heard = h.address, h, now
	c.revive(now, h.address)
}

// roomFor reports whether a member in conflict can be added. Strangers get at most a quarter of the
// room, and are removed for other members.
func (c *core) roomFor(h hello) bool {
	var strangers []string
	for id, o := range c.others {
		if !c.familiar(o.address, o.hello.proof) {
			strangers = append(strangers, id)
		}
	}
	if !c.familiar(h.address, h.proof) {
		return len(strangers) < c.maxOthers/4 && len(c.others) < c.maxOthers
	}
	if len(c.others) >= c.maxOthers && len(strangers) > 0 {
		delete(c.others, slices.Min(strangers))
	}
	return len(c.others) < c.maxOthers
}

// poll asks all members of our view whether they list us, since our size counts only those that do.
// A member that was paused may otherwise be the last to hear that it is alone. A join in progress
// does not trigger a poll: every member would ask every other.
func (c *core) poll(now time.Time) {
	if now.Sub(c.polledAt) < max(c.patience/2, time.Duration(len(c.peers))*c.pollGap) {
		return
	}
	c.polledAt, c.mine = now, nil
	for _, p := range c.order {
		p.next, p.poll = now, true
	}
}

// confirms reports whether a member of our view has told us that it lists us: in a conflict, since
// the last poll.
func (c *core) confirms(p *peer) bool {
	return len(c.others) == 0 || !p.agreed.Before(c.polledAt)
}

// agree removes the evidence about a member: both list each other.
func (c *core) agree(id string) {
	if o := c.others[id]; o != nil {
		delete(c.others, id)
		c.mine = nil
		if o.told {
			c.emit(noted{agreement, o.member()})
		}
	}
}

func (c *core) memberOf(r received) Member {
	return Member{ID: r.member, Address: r.hello.address, Incarnation: r.from, Stamp: r.hello.stamp}
}

// expire removes evidence about silent members.
func (c *core) expire(now time.Time) {
	for id, o := range c.others {
		if now.Sub(o.heard) > c.silence() {
			delete(c.others, id)
			c.mine = nil
		}
	}
}

// drop records an id that was listed: Proto.Actor never lists it here again.
func (c *core) drop(id string) {
	if c.hasDropped(id) {
		return
	}
	c.dropped = append(c.dropped, id)
	if len(c.dropped) > c.maxDropped {
		c.dropped = slices.Delete(c.dropped, 0, 1)
	}
}

func (c *core) hasDropped(id string) bool {
	return c.peers[id] == nil && slices.Contains(c.dropped, id)
}

// contact returns the interval of hellos to a member in conflict.
func (c *core) contact() time.Duration {
	return c.contactGap + time.Duration(len(c.others))*c.contactPer
}

// silence returns the time after which a member that was heard from counts as unreachable.
func (c *core) silence() time.Duration { return 3*c.contact() + 3*time.Second }

// contactOther sends a hello to a member in conflict that we do not list.
func (c *core) contactOther(now time.Time, o *other) {
	to := o.incarnation
	if now.Sub(o.heard) > 2*c.contact() {
		to = 0 // it may have been replaced by another process
	}
	c.sequence++
	c.emit(send{o.address, to, c.compose(o.address, o.id, false, true)})
	if now.Sub(o.named) >= c.nameGap {
		o.named = now
		c.emit(name{o.address, o.incarnation, c.names()})
	}
}

// otherAt returns the member last heard from at an address.
func (c *core) otherAt(address string) (at *other) {
	for _, o := range c.others {
		if o.address == address && (at == nil || o.heard.After(at.heard) ||
			o.heard.Equal(at.heard) && o.id < at.id) {
			at = o
		}
	}
	return at
}

// claim returns the claim of our fragment.
func (c *core) claim() claim {
	if c.mine != nil {
		return *c.mine
	}
	m := claim{size: 1, arbiter: c.arbiter}
	oldest, deny := c.me(), 0
	if c.seen != nil {
		for _, o := range c.seen.Members {
			p := c.peers[o.ID]
			switch _, denies := c.others[o.ID]; {
			case p == nil || p.left: // p is nil for ourselves
			case denies:
				deny++
			case c.confirms(p):
				m.size++
				if o.Stamp != 0 && (oldest.Stamp == 0 || byAge(o, oldest) < 0) {
					oldest = o
				}
			}
		}
		m.disowned = 2*deny > len(c.seen.Members)-1
	}
	m.oldest, m.mark = oldest.Stamp, mark(oldest.ID)
	c.mine = &m
	return m
}

func mark(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

func (c *core) rank() rank { return rank{c.claim(), c.stamp, c.self.ID} }

// patienceFor returns how long evidence about o must last before a member gives way.
func (c *core) patienceFor(o *other) time.Duration {
	if o.certain {
		return c.patience
	}
	return c.joinPatience
}

// ripe returns the others whose evidence has lasted long enough, by id.
func (c *core) ripe(now time.Time) (out []*other) {
	for _, o := range c.others {
		if now.Sub(o.since) >= c.patienceFor(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *other) int { return strings.Compare(a.id, b.id) })
	return out
}

// report reports lost addresses and the split, if they have changed.
func (c *core) report(now time.Time) {
	var others []Member
	var since time.Time
	for _, o := range c.ripe(now) {
		others = append(others, o.member())
		if !o.told {
			o.told = true
			c.emit(noted{split, o.member()})
		}
		if since.IsZero() || o.since.Before(since) {
			since = o.since
		}
	}
	same := slices.EqualFunc(others, c.split, func(a, b Member) bool {
		return a.ID == b.ID && a.Incarnation == b.Incarnation
	})
	if same && !c.lostChanged {
		return
	}
	c.split, c.lostChanged = others, false
	c.emit(divided{lost: c.lostMembers(), others: others, since: since})
}

// splitWake calls sooner with the times at which actions for a split are due.
func (c *core) splitWake(now time.Time, sooner func(time.Time)) {
	next := func(t time.Time) {
		if t.After(now) {
			sooner(t)
		}
	}
	for _, l := range c.lost {
		next(l.next)
	}
	for _, p := range c.permits {
		next(p.until)
	}
	if len(c.others) == 0 {
		return
	}
	next(c.viewAt.Add(c.patience))
	next(c.askedAt.Add(c.retry))
	for o := range maps.Values(c.others) {
		next(o.since.Add(c.patienceFor(o)))
		next(o.since.Add(10 * c.patienceFor(o)))
		next(o.heard.Add(c.silence() + time.Millisecond))
	}
}
