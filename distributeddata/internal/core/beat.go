package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// rhythm is when heartbeats are sent, and to whom.
type rhythm struct {
	at     time.Time
	turn   int       // position in the rotation of members
	unlike time.Time // until then others have probably not seen the same events
}

// hasten brings the next heartbeats forward. Events that arrived by an answer, because their push
// was lost, are probably missing at other members too.
func (r *rhythm) hasten(now time.Time, grace time.Duration) {
	if at := now.Add(grace); at.Before(r.at) {
		r.at = at
	}
}

// beats sends the heartbeats that are due, to a rotating part of the members [R25], and does the
// associated housekeeping.
func (c *Core) beats() {
	if c.now.Before(c.rhythm.at) {
		return
	}
	c.push()
	c.bases.renew(c.now, c.Seen(), c.peers, c.Replica())
	c.rhythm.at = c.now.Add(c.cfg.BeatInterval)
	for range min(c.cfg.BeatPeers, len(c.peers)) {
		c.rhythm.turn++
		c.herald().glance(c.peers[c.rhythm.turn%len(c.peers)], c.rhythm.unlike)
	}
	c.lags = c.herald().trimLog(c.peers, &c.out)
	v := voids{&c.history, c.peers, &c.members, &c.formers, c.members.ready,
		map[causal.Replica]bool{}}
	c.note(c.history.DropMarks(v.void), c.Seen(), &c.bases)
	c.stats.Corrupted += c.history.Scrub()
	c.calls().tidy()
	c.formers.pass(c.now, formerBeats*c.cfg.BeatInterval, c.Seen())
}

// onBeat handles a heartbeat, from which it also learns of new incarnations.
func (c *Core) onBeat(p *peer, ev Receive) error {
	var m pb.Beat
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	v, err := c.bases.in(c.now, m.Seen)
	if _, ok := bases.Unknown(err); err != nil && !ok {
		return err
	}
	if p.replica != ev.From && !c.calls().meet(p, ev.From, m.Announced, &c.out) {
		return nil
	}
	if err != nil { // now the replica can be asked for the base
		return err
	}
	if m.Want {
		p.toldOf, p.remindAt = 0, c.now.Add(c.cfg.BeatInterval)
		c.rhythm.unlike = p.remindAt
		c.herald().sendBeat(p)
	}
	if p.ready != m.Ready {
		p.ready = m.Ready
		c.waits.Stir()
	}
	c.herald().dates(p, &m)
	if m.Seen != nil {
		p.titles(m.Least)
	}
	c.members.compareLeast(&c.step, p)
	cluster := c.cluster()
	same := cluster.under(p, m.Members)
	if m.Pull && p.memory != c.members.Digest() {
		c.members.answerPull(&c.step, p, m.Gone)
	}
	p.leaving = m.Leaving
	if m.Leaving || m.Parting {
		c.members.leaves(p.replica)
	}
	if c.members.parts(p, m.Parting) {
		c.waits.Stir()
	}
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
		c.herald().askBeat(p)
		return nil
	}
	if !cluster.heard(p, v) ||
		!cluster.confirmBeat(p, v.Get(c.Replica()), m.Print, same && m.Ready) {
		return nil // this replica begins anew
	}
	p.keeps(v)
	p.said = said{m.Members, v, m.Ready, m.Entering, m.Kept}
	if same && m.Ready {
		cluster.vouched(p, v)
	}
	if v.Equal(c.Seen()) {
		p.compare(&c.step, c.history.Sum(), history.Sum{m.SumA, m.SumB})
	}
	c.in.follow(cluster.herald, p, v)
	c.herald().remind(p, v)
	return nil
}

// dates compares the times to live of a member with this replica's [R31]. Only heartbeats with a
// vector tell them. If all those of p were lost, this replica asks for one.
func (h herald) dates(p *peer, m *pb.Beat) {
	if m.Seen == nil {
		if !p.dated && h.cfg.Expiry != 0 {
			h.askBeat(p)
		}
		return
	}
	was := p.expiry != h.cfg.Expiry
	p.expiry, p.dated = m.Expiry, true
	if is := p.expiry != h.cfg.Expiry; is != was {
		h.emit(OtherExpiry{p.ID, is})
	}
}

// follow makes sure that this replica will cover v, which p has seen.
func (in *intake) follow(h herald, p *peer, v causal.Vector) {
	if v.Leq(h.Seen()) {
		return
	}
	if own := v.Get(p.replica); own > h.Seen().Get(p.replica) {
		in.ask(h, p, false) // messages of one sender arrive in order, so its push was lost
	}
	in.Behind(h.now, v, p.ID)
}

// meet accepts r as the replica that now runs at p, unless it is older than the present one [R44].
// A replica that other members have recorded is replaced by one that has not taken its place yet,
// and by one that they have recorded since. A former replica that still runs learns this from the
// memory that it is sent. Two replicas that alternate are not greeted each time [R45].
func (c calls) meet(p *peer, r causal.Replica, announced bool, out *outlet) bool {
	if p.replica != 0 && announced && c.members.At(r).Rank == quorum.Absent &&
		c.members.At(p.replica).Rank != quorum.Absent {
		c.stats.Strangers++
		if p.turnsAway(c.now, c.cfg.BeatInterval) {
			c.members.sendMembers(c.step, p, r)
		}
		return false
	}
	greets := p.greets(c.now, c.cfg.BeatInterval)
	c.formers.replaced(p.replica, c.now)
	*p = peer{Member: p.Member, replica: r, pacing: p.pacing, expiry: p.expiry}
	c.members.identify(p)
	out.Lost(p.ID)
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
func (in *intake) catchUp(h herald, ps peers) {
	member, ask := in.CatchUp(h.now, h.Seen())
	if p := ps.of(member); ask && p != nil && p.replica != 0 {
		in.ask(h, p, false)
	}
}
