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
	c.beatAt = c.now.Add(c.cfg.BeatInterval)
	for range min(c.cfg.BeatPeers, len(c.peers)) {
		c.turn++
		c.sendBeat(c.peers[c.turn%len(c.peers)])
	}
	c.trimLog()
	c.dropMarks()
}

// sendBeat tells p what this replica has seen. It goes to whatever replica runs there.
func (c *Core) sendBeat(p *peer) {
	payload := encode(&pb.Beat{Started: c.cfg.Started, Ready: c.ready, Seen: vectorOut(c.seen)})
	c.emit(Send{Member: p.ID, Manifest: wire.ReplicatorBeat, Payload: payload})
}

// onBeat takes a heartbeat, and by it learns of new incarnations.
func (c *Core) onBeat(p *peer, ev Receive) error {
	var m pb.Beat
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	v, err := vectorIn(m.Seen)
	if err != nil {
		return err
	}
	if p.replica != ev.From {
		if p.replica != 0 && m.Started <= p.started {
			c.stats.Strangers++
			return nil // of an incarnation before the present one
		}
		*p = peer{Member: p.Member, replica: ev.From, started: m.Started}
		delete(c.outgoing, p.ID)
		if c.incoming != nil && c.incoming.member == p.ID {
			c.incoming = nil
		}
		c.sendBeat(p) // so that it knows us as soon as we know it
		for _, o := range c.ops {
			o.task.ask(c, o, p)
		}
	}
	p.ready = m.Ready
	c.heard(p, v)
	if v.Leq(c.seen) {
		return nil
	}
	if own := v.Get(p.replica); own > c.seen.Get(p.replica) {
		c.request(p) // pushes and beats of one sender keep their order: its push is lost
	}
	c.noteLag(p, v)
	return nil
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

// dropMarks forgets marks that nothing can need any more [R10]: a later chain of the slot's owner makes
// one void, and so does the owner's own knowledge of the reset once all of its events from before that
// are here.
func (c *Core) dropMarks() {
	for _, key := range c.markedKeys() {
		s, _ := c.keys.Get(key)
		next := s
		for path, m := range s.Marks() {
			if c.markVoid(s, path, m) {
				next = next.WithoutMark(path)
			}
		}
		if !next.SameMarks(s) {
			c.put(key, next)
		}
	}
}

func (c *Core) markVoid(s causal.Store, path string, m causal.Mark) bool {
	owner, ok := causal.SlotOwner(path)
	if !ok {
		return true
	}
	if e, live := s.Get(path); live {
		t, err := causal.ParseTotal(e.First().Payload)
		return err == nil && t.Since > m.N
	}
	if owner == c.me {
		return true // has seen the reset, and has nothing on the way
	}
	p := c.peerOf(owner)
	return p != nil && p.seen.Covers(m.By) && c.seen.Get(owner) >= p.seen.Get(owner)
}
