package core

import (
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// beats sends the heartbeats that are due, to a rotating part of the members [R20], and does the
// housekeeping that goes with them.
func (c *Core) beats() {
	if c.now.Before(c.beatAt) {
		return
	}
	c.push()
	c.renewBase()
	c.beatAt = c.now.Add(c.cfg.BeatInterval)
	for range min(c.cfg.BeatPeers, len(c.peers)) {
		c.turn++
		c.glance(c.peers[c.turn%len(c.peers)])
	}
	c.trimLog()
	c.note(c.dropMarks(c.markVoid))
	c.scrubSome()
	c.tidy()
	c.forgetUndos()
	c.forgetFormers()
	c.tellRetractions()
}

// sendBeat tells p what this replica has seen, and the fingerprint of what it holds. It goes to whatever
// replica runs there. A vector that the present one knows is left out.
func (c *Core) sendBeat(p *peer) {
	m := c.newBeat()
	if p.replica == 0 || p.toldOf != m.Digest {
		m.Seen = c.vectorOut(c.seen)
		p.toldOf = m.Digest
	}
	c.beat(p, m)
}

// askBeat sends a heartbeat that asks for one, with the whole vector.
func (c *Core) askBeat(p *peer) {
	m := c.newBeat()
	m.Seen, m.Want = c.vectorOut(c.seen), true
	c.beat(p, m)
}

// glance tells p the digest of what this replica has seen: most of the time p has seen the same. If it has
// not, it asks, and for a while the next ones are told the whole vector.
func (c *Core) glance(p *peer) {
	if p.replica == 0 || p.toldOf == 0 || c.now.Before(c.unlike) {
		c.sendBeat(p)
		return
	}
	c.beat(p, c.newBeat())
}

func (c *Core) newBeat() *pb.Beat {
	return &pb.Beat{
		Ready: c.counts(), Digest: digest(c.seen), SumA: c.sum[0], SumB: c.sum[1],
		Members: c.roll.digest, Announced: c.announced(), Leaving: c.roll.leaving,
		Parting: c.parting(),
	}
}

func (c *Core) beat(p *peer, m *pb.Beat) {
	if p.replica != 0 {
		m.Print = uint64(p.replica)<<32 | uint64(c.printOf(p.replica))
	}
	c.emit(Send{Member: p.ID, Manifest: wire.ReplicatorBeat, Payload: encode(m)})
}

// onBeat takes a heartbeat, and by it learns of new incarnations.
func (c *Core) onBeat(p *peer, ev Receive) error {
	var m pb.Beat
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	v, err := c.vectorIn(m.Seen)
	if _, ok := asUnknown(err); err != nil && !ok {
		return err
	}
	if p.replica != ev.From && !c.meet(p, ev.From, m.Announced) {
		return nil
	}
	if err != nil { // it can be asked for the base now
		return err
	}
	if m.Want {
		p.toldOf, p.remindAt = 0, c.now.Add(c.cfg.BeatInterval)
		c.unlike = p.remindAt
		c.sendBeat(p)
	}
	if p.ready != m.Ready {
		p.ready, c.stirred = m.Ready, true
	}
	same := c.under(p, m.Members)
	p.leaving = m.Leaving
	c.parts(p, m.Parting)
	switch {
	case m.Seen != nil:
		if v.Equal(c.seen) {
			v = c.seen // shares what it is made of
		}
		p.seenThen, p.heardOf = v, m.Digest
	case m.Digest == digest(c.seen):
		v = c.seen
	case m.Digest == p.heardOf:
		v = p.seenThen
	default:
		c.askBeat(p)
		return nil
	}
	if !c.heard(p, v) || !c.confirmBeat(p, v.Get(c.me), m.Print, same && m.Ready) {
		return nil // under another id now
	}
	p.keeps(v)
	if same && m.Ready {
		c.vouched(p, v)
	}
	if v.Equal(c.seen) {
		c.compare(p, Sum{m.SumA, m.SumB})
	}
	c.follow(p, v)
	c.remind(p, v)
	return nil
}

// remind tells p, which lacks something, what there is, if it has not been told for a heartbeat's time.
func (c *Core) remind(p *peer, v causal.Vector) {
	if !c.seen.Leq(v) && !c.now.Before(p.remindAt) {
		p.remindAt = c.now.Add(c.cfg.BeatInterval)
		c.sendBeat(p)
	}
}

// follow sees to it that this replica comes to cover what p says it has seen.
func (c *Core) follow(p *peer, v causal.Vector) {
	if v.Leq(c.seen) {
		return
	}
	if own := v.Get(p.replica); own > c.seen.Get(p.replica) {
		c.request(p) // what one sender says keeps its order: its push is lost
	}
	c.noteLag(p, v)
}

// spread brings the next heartbeats forward: what came as an answer, since its push did not come, others
// probably lack too.
func (c *Core) spread() {
	if at := c.now.Add(c.cfg.Grace); at.Before(c.beatAt) {
		c.beatAt = at
	}
}

// meet takes the replica that runs for p now, unless that is one from before the present [R56]: a replica that
// others have recorded gives way to one that has not taken its place yet, and to one that they have recorded
// since. A former one that still runs learns so from what is remembered. Two that take turns are not greeted
// each time [R58].
func (c *Core) meet(p *peer, r causal.Replica, announced bool) bool {
	if p.replica != 0 && announced && c.roll.at(r).rank == absent && c.roll.at(p.replica).rank != absent {
		c.stats.Strangers++
		if c.turnsAway(p) {
			c.sendMembers(p, r)
		}
		return false
	}
	greets := c.greets(p)
	c.replaced(p.replica)
	*p = peer{Member: p.Member, replica: r, pacing: p.pacing}
	c.identify(p)
	delete(c.outgoing, p.ID)
	if c.incoming != nil && c.incoming.member == p.ID {
		c.incoming = nil
	}
	c.stirred = true
	if !greets {
		p.askAgain = c.now.Add(c.cfg.BeatInterval)
		return true
	}
	c.sendBeat(p) // so that it knows us as soon as we know it
	for _, o := range c.ops {
		if o.asked {
			o.task.ask(c, o, p)
		}
	}
	return true
}

// noteLag remembers that others have seen more. It may be on its way still, so we ask only if it has
// not come after the grace.
func (c *Core) noteLag(p *peer, v causal.Vector) {
	if c.behind == nil {
		c.behind = &lag{vector: v, member: p.ID, since: c.now}
	}
}

// catchUp asks for what has not come by itself: the member that spoke of it, or another that is ahead
// if that one is gone or does not answer.
func (c *Core) catchUp() {
	if c.behind == nil {
		return
	}
	if c.behind.vector.Leq(c.seen) {
		c.behind = nil
		return
	}
	if c.incoming != nil || c.now.Before(c.behind.since.Add(c.cfg.Grace)) {
		return
	}
	p := c.peer(c.behind.member)
	c.behind = nil
	if p != nil && p.replica != 0 {
		c.request(p)
	}
}

// markVoid reports whether nothing can need a mark any more [R10]: a later chain of the slot's owner makes
// it void, and so does the owner's own knowledge of the reset once all of its events from before that
// are here.
func (c *Core) markVoid(s causal.Store, path string, m causal.Mark) bool {
	owner, ok := causal.SlotOwner(path)
	if !ok {
		return true
	}
	if e, live := s.Get(path); live {
		t, err := causal.ParseTotal(e.First().Payload)
		return err == nil && t.Since > m.N
	}
	if owner == c.me || c.past.events.Get(owner) > 0 {
		return true // has seen the reset, and has nothing on the way
	}
	p := c.peerOf(owner)
	return p != nil && p.vector().Covers(m.By) && c.seen.Get(owner) >= p.vector().Get(owner)
}
