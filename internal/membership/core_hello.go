package membership

import (
	"cmp"
	"slices"
	"time"
)

// reason is the reason why a hello was dropped.
type reason int

const (
	whyMalformed reason = iota // could not be opened or decoded, or contains impossible claims
	whyForeign                 // of another cluster, or of an unknown version
	whyStranger                // of a member that is not listed here
	whyStale                   // for or from a former incarnation
	whyDuplicate               // received before, or overtaken by a newer one
	whyOwn                     // claims to come from this member
	numberOfReasons
)

// onHello processes a hello, which describes another member and its view of us.
func (c *core) onHello(now time.Time, r received) {
	if !c.up {
		c.emit(dropped{whyStranger})
		return
	}
	if why, ok := c.acceptable(now, r); !ok {
		c.emit(dropped{why})
		return
	}
	p, ok := c.roster.peers[r.member]
	if !ok {
		c.emit(dropped{whyStranger})
		c.onStranger(now, r)
		return
	}
	h := r.hello
	if !h.listsYou && !c.familiar(h.address, h.proof) {
		c.emit(dropped{whyStale}) // of another process, which does not speak for the listed one
		return
	}
	if why, ok := c.adopt(now, p, r); !ok {
		c.emit(dropped{why})
		if why == whyDuplicate {
			c.onOvertaken(now, r)
		}
		return
	}
	p.pledge = cmp.Or(p.pledge, h.pledge)
	p.sequence, p.heard = h.sequence, now
	if p.stamp == 0 && h.stamp != 0 {
		p.stamp, c.changed = h.stamp, true
	}
	c.maxStamp = max(c.maxStamp, h.stamp, h.maxStamp)
	p.left, p.speaks = p.left || h.leaving, h.size != 0
	if h.listsYou {
		p.agreed, c.mine = now, nil
	}
	if h.leaving {
		c.mine = nil
		c.farewell(r)
		return
	}
	c.weigh(now, r, true)
	c.hearVerdict(now, p, h.listsYou)
	c.onRequest(now, r, true)
	if h.answer && !c.removed {
		// If this hello lets us choose our stamp, the answer already carries it.
		c.chooseStamp(now)
		c.hello(now, p, false)
	}
}

func (c *core) acceptable(now time.Time, r received) (reason, bool) {
	h := r.hello
	limit := stampAt(now.Add(c.maxSkew))
	switch {
	case r.member == c.self.ID || h.address == c.address:
		return whyOwn, false
	case r.to != 0 && r.to != c.incarnation:
		return whyStale, false
	case h.sequence == 0 || h.stamp > limit || h.maxStamp > limit:
		return whyMalformed, false
	}
	return 0, true
}

// adopt checks the hello against what is known of its sender, and adopts its incarnation.
func (c *core) adopt(now time.Time, p *peer, r received) (reason, bool) {
	switch {
	case r.hello.address != p.Address:
		return whyStale, false // of the same id at another address
	case slices.Contains(c.roster.former, retired{p.ID, r.from}):
		return whyStale, false
	case p.incarnation == r.from:
		if r.hello.sequence <= p.sequence {
			return whyDuplicate, false
		}
		if p.stamp != 0 && r.hello.stamp != p.stamp {
			// A stamp never changes: a 0 is from an old hello, which the sequence should have
			// excluded.
			return whyMalformed, false
		}
		return 0, true
	case p.incarnation != 0 && r.hello.stamp != 0 && r.hello.stamp < p.stamp:
		return whyStale, false // from an older process with the same id
	}
	if p.incarnation != 0 {
		c.roster.retire(p)
	}
	*p = peer{listed: p.listed, pledge: p.pledge, incarnation: r.from, since: now, next: p.next}
	c.changed = true
	return 0, true
}

// onStranger processes a hello of a member that is not listed here. The member may be new,
// expelled, or in another fragment.
func (c *core) onStranger(now time.Time, r received) {
	h := r.hello
	if o := c.conflicts.by[r.member]; o != nil && o.incarnation == r.from &&
		h.sequence <= o.hello.sequence {
		c.onOvertaken(now, r)
		return
	}
	if h.leaving {
		c.farewell(r)
		return
	}
	c.weigh(now, r, false)
	c.onRequest(now, r, false)
	if h.answer && h.address != "" && !c.removed && c.mayAnswer(now, h.address) {
		c.answerStranger(r)
	}
}

// onOvertaken processes a permit, or the refusal of one, in a hello that was received before or
// overtaken: each answers a message of ours, and its giver waits for 30 seconds in vain if it is
// lost.
func (c *core) onOvertaken(now time.Time, r received) {
	if r.hello.permit != 0 || r.hello.declined != 0 {
		c.onRequest(now, r, c.roster.peers[r.member] != nil)
	}
}

// farewell forgets the address of a member that leaves gracefully.
func (c *core) farewell(r received) {
	c.lost.remove(func(l *lostAddress) bool { return l.address == r.hello.address })
	delete(c.conflicts.by, r.member)
	c.mine = nil
	c.emit(noted{goodbye, c.memberOf(r)})
}

// mayAnswer limits answers to strangers, since strangers choose the address of the answer. A lost
// address was chosen by us, and has a separate limit.
func (c *core) mayAnswer(now time.Time, address string) bool {
	if l := c.lost.at(address); l != nil && !l.named {
		if now.Sub(l.told) < c.verdictGap {
			return false
		}
		l.told = now
		return true
	}
	return c.strangerRate.next(now)
}

// answerStranger informs a member that it is not listed here. If the member did not know our
// incarnation, the answer requests another hello, so that each side has heard from the other.
func (c *core) answerStranger(r received) {
	c.sequence++
	c.emit(send{r.hello.address, r.from, c.compose(r.hello.address, r.member, false, r.to == 0 &&
		r.hello.size != 0)})
}

// hearVerdict counts the consecutive hellos in which p reports that it does not list us. A peer may
// list us later than we list it, so this counts only once it has listed us, or after a grace
// period.
func (c *core) hearVerdict(now time.Time, p *peer, listsUs bool) {
	switch {
	case listsUs:
		p.listedUs, p.against = true, 0
	case !p.listedUs && now.Sub(later(p.since, c.upAt)) < c.grace:
	case p.against > 0 && now.Sub(p.againstAt) < c.verdictGap:
	default:
		p.against++
		p.againstAt = now
		if soon := now.Add(c.interval(now, p)); soon.Before(p.next) {
			p.next = soon // ask again before the idle time is over
		}
	}
}

// countDisowners determines whether more than half of the peers in our view disown us. In that case
// we step down without patience, but not without a permit: in a ring of members each of which
// disowns the next, all would otherwise leave at once. Members of versions without permits cannot
// give one.
func (c *core) countDisowners() {
	c.disowned = false
	if !slices.ContainsFunc(c.roster.order, func(p *peer) bool { return p.against >= c.verdicts }) {
		return
	}
	against, peers, speak := 0, 0, false
	for _, m := range c.seen.Members {
		if p := c.roster.peers[m.ID]; p != nil {
			peers++
			if p.against >= c.verdicts {
				against++
				speak = speak || p.speaks
			}
		}
	}
	c.disowned = 2*against > peers
	if c.disowned && !speak {
		c.remove(ErrExpelled)
	}
}

// chooseStamp chooses our stamp: at once if there are no peers, otherwise when each peer has
// reported its stamp or that it has none yet, or when the wait is over.
func (c *core) chooseStamp(now time.Time) {
	if c.stamp != 0 {
		return
	}
	if now.Sub(c.waitSince) < c.stampWait {
		for _, p := range c.roster.peers {
			if p.heard.IsZero() {
				return
			}
		}
	}
	c.stamp = max(stampAt(now), c.maxStamp+1)
	c.maxStamp, c.changed = c.stamp, true
	for _, p := range c.roster.order {
		p.next = now // send it to all
	}
}

// mayWithdraw reports whether we have chosen our stamp only because we were listed alone, shortly
// after our start, and have not sent it to anyone. Some providers list a new member before the
// members it joins, and its clock alone must not make it the oldest of them.
func (c *core) mayWithdraw(now time.Time) bool {
	return c.stamp != 0 && !c.told && now.Sub(c.upAt) < c.stampWait
}

// greet sends the hellos that are due, and those that will be due soon, so that one wake serves
// many. Each hello is answered, and the answering peer waits for another interval, so that a pair
// exchanges two hellos per interval.
func (c *core) greet(now time.Time) {
	if !slices.ContainsFunc(c.roster.order, func(p *peer) bool { return !p.next.After(now) }) {
		return
	}
	for _, p := range c.roster.order {
		every := c.interval(now, p)
		early := min(every/4, c.idle/4) // few in a large cluster, so that they stay spread out
		if c.answers(p) {
			early = 0 // otherwise both would ask
		}
		if p.next.Sub(now) <= early {
			c.hello(now, p, p.poll || p.heard.IsZero() || now.Sub(p.heard) > every/4)
			p.poll = false
		}
	}
}

// answers reports whether, in a pair in normal operation, p is the one that asks.
func (c *core) answers(p *peer) bool { return c.self.ID > p.ID }

func (c *core) hello(now time.Time, p *peer, answer bool) {
	c.sequence++
	c.emit(send{p.Address, p.incarnation, c.compose(p.Address, p.ID, true, answer)})
	p.next = c.nextHello(now, p)
}

// nextHello returns when to send p the next hello. In normal operation each pair has its own offset
// in the interval, so that a member sends its hellos one after the other and not all at once. An
// expelled member therefore soon hears of it from one of them.
func (c *core) nextHello(now time.Time, p *peer) time.Time {
	every := c.interval(now, p)
	if every <= c.idle+c.idle/8 {
		return now.Add(every)
	}
	at := now.Truncate(every).Add(time.Duration(mark(c.self.ID+p.ID) % uint64(every)))
	for at.Sub(now) < every/2 {
		at = at.Add(every)
	}
	return at
}

// compose returns a hello for the member at an address with this id, which is "" if unknown. It
// omits a stamp that may still be withdrawn if the receiver is not listed here: the receiver may
// already list us, and would then not accept another stamp.
func (c *core) compose(to, id string, lists, answer bool) hello {
	h := hello{
		address: c.address, sequence: c.sequence, stamp: c.stamp, maxStamp: c.maxStamp,
		listsYou: lists, answer: answer, claim: c.claim(), droppedYou: c.hasDropped(id),
	}
	if c.view != nil {
		h.viewHash = c.view.Hash
	}
	proof := c.proofFor(to)
	if lists {
		h.pledge = pledgeOf(proof)
	}
	if !lists || c.conflicts.by[id] != nil {
		h.proof = proof
	}
	if !lists && c.mayWithdraw(c.now) {
		h.stamp, h.maxStamp = 0, 0
	}
	c.told = c.told || h.stamp != 0
	return h
}

func (c *core) interval(now time.Time, p *peer) time.Duration {
	switch settled := p.stamp != 0 && p.listedUs; {
	case !settled && now.Sub(p.since) < c.settleFor:
		return max(c.settle, time.Duration(len(c.roster.peers))*c.settleGap)
	case p.against > 0:
		return 2 * c.verdictGap
	case c.conflicts.by[p.ID] != nil, !c.confirms(p):
		return c.conflicts.contact()
	case !settled:
		return max(c.steady, c.share())
	}
	every := max(c.idle, c.share())
	if c.answers(p) {
		every += every / 8
	}
	return every
}

// share returns the interval of each pair at which the hellos of a member are restGap apart,
// whatever the number of members.
func (c *core) share() time.Duration { return time.Duration(len(c.roster.peers)) * c.restGap }

// nextWake returns when the next hello, the end of the wait for stamps, or an action for a split is
// due, or zero if there is none.
func (c *core) nextWake(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if c.stamp == 0 {
		sooner(c.waitSince.Add(c.stampWait))
	}
	for _, p := range c.roster.order {
		sooner(p.next)
	}
	c.splitWake(now, sooner)
	return at
}

// stampAt leaves room for 65,536 members that join in the same millisecond.
func stampAt(t time.Time) uint64 { return uint64(max(t.UnixMilli(), 0)) << 16 }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
