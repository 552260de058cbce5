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
	o := c.conflicts.by[r.member]
	if o == nil || o.incarnation != r.from {
		if o == nil && !c.roomFor(h) {
			return
		}
		o = &other{id: r.member, incarnation: r.from, since: now}
		c.conflicts.by[r.member], c.mine = o, nil
		c.emit(noted{inConflict, c.memberOf(r)})
	}
	if certain := h.droppedYou || c.hasDropped(r.member); certain && !o.certain {
		o.certain, o.since = true, now
	}
	if !o.polled && (o.certain || now.Sub(o.since) >= c.patience) {
		o.polled = true
		c.poll(now)
	}
	o.address, o.hello, o.heard = h.address, h, now
	c.lost.revive(now, h.address, now.Add(c.conflicts.contact()))
}

// roomFor reports whether a member in conflict can be added. Strangers get at most a quarter of the
// room, and are removed for other members.
func (c *core) roomFor(h hello) bool {
	var strangers []string
	for id, o := range c.conflicts.by {
		if !c.familiar(o.address, o.hello.proof) {
			strangers = append(strangers, id)
		}
	}
	if !c.familiar(h.address, h.proof) {
		return len(strangers) < c.maxOthers/4 && len(c.conflicts.by) < c.maxOthers
	}
	if len(c.conflicts.by) >= c.maxOthers && len(strangers) > 0 {
		delete(c.conflicts.by, slices.Min(strangers))
	}
	return len(c.conflicts.by) < c.maxOthers
}

// poll asks all members of our view whether they list us, since our size counts only those that do.
// A member that was paused may otherwise be the last to hear that it is alone. A join in progress
// does not trigger a poll: every member would ask every other.
func (c *core) poll(now time.Time) {
	gap := max(c.patience/2, time.Duration(len(c.roster.peers))*c.pollGap)
	if now.Sub(c.conflicts.polledAt) < gap {
		return
	}
	c.conflicts.polledAt, c.mine = now, nil
	for _, p := range c.roster.order {
		p.next, p.poll = now, true
	}
}

// confirms reports whether a member of our view has told us that it lists us: in a conflict, since
// the last poll.
func (c *core) confirms(p *peer) bool {
	return len(c.conflicts.by) == 0 || !p.agreed.Before(c.conflicts.polledAt)
}

// agree removes the evidence about a member: both list each other.
func (c *core) agree(id string) {
	if o := c.conflicts.by[id]; o != nil {
		delete(c.conflicts.by, id)
		c.mine = nil
		if o.told {
			c.emit(noted{agreement, o.member()})
		}
	}
}

func (c *core) memberOf(r received) Member {
	return Member{ID: r.member, Address: r.hello.address, Incarnation: r.from, Stamp: r.hello.stamp}
}

func (c *core) hasDropped(id string) bool {
	return c.roster.peers[id] == nil && slices.Contains(c.conflicts.dropped, id)
}

// contactOther sends a hello to a member in conflict that we do not list.
func (c *core) contactOther(now time.Time, o *other) {
	to := o.incarnation
	if now.Sub(o.heard) > 2*c.conflicts.contact() {
		to = 0 // it may have been replaced by another process
	}
	c.sequence++
	c.emit(send{o.address, to, c.compose(o.address, o.id, false, true)})
	if now.Sub(o.named) >= c.nameGap {
		o.named = now
		c.emit(name{o.address, o.incarnation, c.roster.names()})
	}
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
			p := c.roster.peers[o.ID]
			switch _, denies := c.conflicts.by[o.ID]; {
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

// report reports lost addresses and the split, if they have changed.
func (c *core) report(now time.Time) {
	var others []Member
	var since time.Time
	for _, o := range c.conflicts.ripe(now) {
		others = append(others, o.member())
		if !o.told {
			o.told = true
			c.emit(noted{split, o.member()})
		}
		if since.IsZero() || o.since.Before(since) {
			since = o.since
		}
	}
	same := slices.EqualFunc(others, c.conflicts.reported, func(a, b Member) bool {
		return a.ID == b.ID && a.Incarnation == b.Incarnation
	})
	if same && !c.lost.changed {
		return
	}
	c.conflicts.reported, c.lost.changed = others, false
	c.emit(divided{lost: c.lost.members(), others: others, since: since})
}

// splitWake calls sooner with the times at which actions for a split are due.
func (c *core) splitWake(now time.Time, sooner func(time.Time)) {
	next := func(t time.Time) {
		if t.After(now) {
			sooner(t)
		}
	}
	for _, l := range c.lost.all {
		next(l.next)
	}
	for _, p := range c.permits.given {
		next(p.until)
	}
	if len(c.conflicts.by) == 0 {
		return
	}
	next(c.viewAt.Add(c.patience))
	next(c.permits.askedAt.Add(c.retry))
	for o := range maps.Values(c.conflicts.by) {
		next(o.since.Add(c.conflicts.patienceFor(o)))
		next(o.since.Add(10 * c.conflicts.patienceFor(o)))
		next(o.heard.Add(c.conflicts.silence() + time.Millisecond))
	}
}
