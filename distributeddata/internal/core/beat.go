package core

import (
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// beats sends the heartbeats that are due, to a rotating part of the members [R25], and does the
// associated housekeeping.
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
	c.note(c.history.DropMarks(c.voidMarks()))
	c.stats.Rotten += c.history.Scrub()
	c.tidy()
	c.formers.pass(c.now, formerBeats*c.cfg.BeatInterval, c.Seen())
}

// sendBeat sends p this replica's vector and fingerprint. It is addressed to whichever replica runs
// at p. The vector is left out if the present replica knows it.
func (c *Core) sendBeat(p *peer) {
	m := c.newBeat()
	if p.replica == 0 || p.toldOf != m.Digest {
		m.Seen = c.vectorOut(c.Seen())
		p.toldOf = m.Digest
	}
	c.beat(p, m)
}

// askBeat sends a heartbeat with the whole vector that asks for one in return.
func (c *Core) askBeat(p *peer) {
	m := c.newBeat()
	m.Seen, m.Want = c.vectorOut(c.Seen()), true
	c.beat(p, m)
}

// glance sends p only the digest of this replica's vector, since p usually has the same one. If p
// has a different one, it asks, and for a while the following members are sent the whole vector.
func (c *Core) glance(p *peer) {
	if p.replica == 0 || p.toldOf == 0 || c.now.Before(c.unlike) {
		c.sendBeat(p)
		return
	}
	c.beat(p, c.newBeat())
}

func (c *Core) newBeat() *pb.Beat {
	sum := c.history.Sum()
	return &pb.Beat{
		Ready: c.counts(), Digest: digest(c.Seen()), SumA: sum[0], SumB: sum[1],
		Members: c.spoken(), Announced: c.roll.announced(), Leaving: c.roll.leaving,
		Parting: c.parting(), Entering: c.roll.entering, Kept: c.disk.kept,
	}
}

func (c *Core) beat(p *peer, m *pb.Beat) {
	if p.replica != 0 {
		m.Print = uint64(p.replica)<<32 | uint64(c.history.HashOf(p.replica))
	}
	if m.Seen != nil { // others take no such bytes
		m.Expiry, m.Least = c.cfg.Expiry, uint32(c.cfg.MinMembers)
	}
	p.told, p.toldAt = c.roll.Digest(), c.now
	c.emit(Send{Member: p.ID, Manifest: wire.ReplicatorBeat, Payload: encode(m)})
}

// onBeat handles a heartbeat, from which it also learns of new incarnations.
func (c *Core) onBeat(p *peer, ev Receive) error {
	var m pb.Beat
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	v, err := c.vectorIn(m.Seen)
	if _, ok := bases.Unknown(err); err != nil && !ok {
		return err
	}
	if p.replica != ev.From && !c.meet(p, ev.From, m.Announced) {
		return nil
	}
	if err != nil { // now the replica can be asked for the base
		return err
	}
	if m.Want {
		p.toldOf, p.remindAt = 0, c.now.Add(c.cfg.BeatInterval)
		c.unlike = p.remindAt
		c.sendBeat(p)
	}
	if p.ready != m.Ready {
		p.ready = m.Ready
		c.waits.Stir()
	}
	c.dates(p, &m)
	if m.Seen != nil {
		p.titles(m.Least)
	}
	c.compareLeast(p)
	same := c.under(p, m.Members)
	if m.Pull && p.memory != c.roll.Digest() {
		c.answerPull(p, m.Gone)
	}
	p.leaving = m.Leaving
	if m.Leaving || m.Parting {
		c.roll.leaves(p.replica)
	}
	c.parts(p, m.Parting)
	switch {
	case m.Seen != nil:
		if v.Equal(c.Seen()) {
			v = c.Seen() // shares memory
		}
		p.seenThen, p.heardOf = v, m.Digest
	case m.Digest == digest(c.Seen()):
		v = c.Seen()
	case m.Digest == p.heardOf:
		v = p.seenThen
	default:
		c.askBeat(p)
		return nil
	}
	if !c.heard(p, v) || !c.confirmBeat(p, v.Get(c.Replica()), m.Print, same && m.Ready) {
		return nil // this replica begins anew
	}
	p.keeps(v)
	p.said = said{m.Members, v, m.Ready, m.Entering, m.Kept}
	if same && m.Ready {
		c.vouched(p, v)
	}
	if v.Equal(c.Seen()) {
		c.compare(p, history.Sum{m.SumA, m.SumB})
	}
	c.follow(p, v)
	c.remind(p, v)
	return nil
}

// dates compares the times to live of a member with this replica's [R31]. Only heartbeats with a
// vector tell them. If all those of p were lost, this replica asks for one.
func (c *Core) dates(p *peer, m *pb.Beat) {
	if m.Seen == nil {
		if !p.dated && c.cfg.Expiry != 0 {
			c.askBeat(p)
		}
		return
	}
	was := p.expiry != c.cfg.Expiry
	p.expiry, p.dated = m.Expiry, true
	if is := p.expiry != c.cfg.Expiry; is != was {
		c.emit(OtherExpiry{p.ID, is})
	}
}

// remind sends a heartbeat to p, which lacks events, unless it was sent one within the last
// heartbeat interval.
func (c *Core) remind(p *peer, v causal.Vector) {
	if !c.Seen().Leq(v) && !c.now.Before(p.remindAt) {
		p.remindAt = c.now.Add(c.cfg.BeatInterval)
		c.sendBeat(p)
	}
}

// follow makes sure that this replica will cover v, which p has seen.
func (c *Core) follow(p *peer, v causal.Vector) {
	if v.Leq(c.Seen()) {
		return
	}
	if own := v.Get(p.replica); own > c.Seen().Get(p.replica) {
		c.request(p) // messages of one sender arrive in order, so its push was lost
	}
	c.in.Behind(c.now, v, p.ID)
}

// spread brings the next heartbeats forward. Events that arrived by an answer, because their push
// was lost, are probably missing at other members too.
func (c *Core) spread() {
	if at := c.now.Add(c.cfg.Grace); at.Before(c.beatAt) {
		c.beatAt = at
	}
}

// meet accepts r as the replica that now runs at p, unless it is older than the present one [R44].
// A replica that other members have recorded is replaced by one that has not taken its place yet,
// and by one that they have recorded since. A former replica that still runs learns this from the
// memory that it is sent. Two replicas that alternate are not greeted each time [R45].
func (c *Core) meet(p *peer, r causal.Replica, announced bool) bool {
	if p.replica != 0 && announced && c.roll.At(r).Rank == quorum.Absent &&
		c.roll.At(p.replica).Rank != quorum.Absent {
		c.stats.Strangers++
		if p.turnsAway(c.now, c.cfg.BeatInterval) {
			c.sendMembers(p, r)
		}
		return false
	}
	greets := p.greets(c.now, c.cfg.BeatInterval)
	c.formers.replaced(p.replica, c.now)
	*p = peer{Member: p.Member, replica: r, pacing: p.pacing, expiry: p.expiry}
	c.identify(p)
	c.out.Lost(p.ID)
	c.in.Lost(p.ID)
	c.waits.Stir()
	if !greets {
		p.askAgain = c.now.Add(c.cfg.BeatInterval)
		return true
	}
	c.sendBeat(p) // so that it knows us as soon as we know it
	for o := range c.waits.All() {
		if o.Asked() {
			o.Task.ask(c, o, p)
		}
	}
	return true
}

// catchUp requests events that have not arrived by themselves.
func (c *Core) catchUp() {
	member, ask := c.in.CatchUp(c.now, c.Seen())
	if p := c.peers.of(member); ask && p != nil && p.replica != 0 {
		c.request(p)
	}
}

// voidMarks returns markVoid, which finds out only once whether an owner has departed.
func (c *Core) voidMarks() func(causal.Store, string, causal.Mark) bool {
	known := map[causal.Replica]bool{}
	departed := func(r causal.Replica) bool {
		is, ok := known[r]
		if !ok {
			is = c.departed(r)
			known[r] = is
		}
		return is
	}
	return func(s causal.Store, path string, m causal.Mark) bool {
		return c.markVoid(s, path, m, departed)
	}
}

// markVoid reports whether a mark is no longer needed [R15]. A later chain of the slot's owner
// makes it void. So does the owner's own knowledge of the reset once all of its events from before
// that are here. An owner that has gone learns of nothing: its mark is void once every member
// covers the reset, and none has an event of the owner that is not here.
func (c *Core) markVoid(s causal.Store, path string, m causal.Mark,
	departed func(causal.Replica) bool) bool {
	owner, ok := causal.SlotOwner(path)
	if !ok {
		return true
	}
	if e, live := s.Get(path); live {
		t, err := causal.ParseTotal(e.First().Payload)
		return err == nil && t.Since > m.N
	}
	if c.history.Mine(owner) {
		return true // it has seen the reset, and has nothing in flight
	}
	if p := c.peers.at(owner); p != nil {
		return p.vector().Covers(m.By) && c.Seen().Get(owner) >= p.vector().Get(owner)
	}
	return departed(owner) && c.allCover(m.By, owner)
}

// departed reports whether a replica has not run for any member for so long that none of its
// messages can be in flight, no event of it has arrived for as long, and it will not come back with
// events that no other member has.
func (c *Core) departed(r causal.Replica) bool {
	if at := c.roll.At(r); at.Rank != quorum.Absent &&
		(at.Rank != quorum.Gone || c.roll.MayReturn(at)) {
		return false
	}
	return c.ready && c.formers.quiet(r, c.Seen().Get(r))
}

// allCover reports whether all members, those in view and those that are remembered and not gone,
// cover the event d and have no event of r that is not here.
func (c *Core) allCover(d causal.Dot, r causal.Replica) bool {
	n := c.Seen().Get(r)
	for _, p := range c.peers {
		if p.replica == 0 || !p.vector().Covers(d) || p.vector().Get(r) > n {
			return false
		}
	}
	return !slices.ContainsFunc(c.roll.Members(), func(m quorum.Member) bool {
		return m.Rank != quorum.Gone && m.Rank != quorum.Absent && m.Name != c.cfg.Member &&
			c.peers.at(m.Inc.Replica) == nil
	})
}
