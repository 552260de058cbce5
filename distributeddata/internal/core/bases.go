package core

import (
	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// Vectors are told as the entries in which they differ from a base [R37]; see package bases.

// known returns the base with a name.
func (c *Core) known(name []byte) (causal.Vector, bool) { return c.bases.Find(c.now, name) }

// renewBase adds departed replicas to the base [R38].
func (c *Core) renewBase() {
	var runs map[causal.Replica]bool
	c.bases.Renew(c.now, c.Seen(), func(r causal.Replica) bool {
		if runs == nil {
			runs = c.peers.running(c.Replica())
		}
		return runs[r]
	})
}

func (c Config) baseLimits() bases.Limits {
	return bases.Limits{Count: c.WindowCount, Bytes: c.WindowBytes, Pause: c.Grace,
		Patience: c.Patience}
}

// await keeps a message until the base that it names is known, if there is room, and requests the
// base from its sender. A message that is not kept counts as lost [R39].
func (c *Core) await(ev Receive, digest causal.Digest) {
	p := c.peers.of(ev.Member)
	if p == nil || p.replica == 0 {
		return
	}
	kept, ask := c.bases.Await(c.now, ev, len(ev.Payload), p.ID, digest, c.cfg.baseLimits())
	if kept {
		c.stats.Awaiting++
	}
	if ask {
		c.askBase(p)
	}
}

func (c *Core) askBase(p *peer) {
	m := c.bases.Ask(c.now, c.cfg.baseLimits())
	c.send(p, wire.ReplicatorBaseRequest,
		encode(&pb.BaseRequest{Base: m.Base, Known: m.Known, After: uint64(m.After)}))
}

// pursueFetch repeats a request that was not answered, and gives up at the deadline.
func (c *Core) pursueFetch() {
	member, _, ok := c.bases.Fetching()
	if !ok {
		return
	}
	p := c.peers.of(member)
	if c.bases.Pursue(c.now, p != nil && p.replica != 0, c.cfg.baseLimits()) {
		c.askBase(p)
	}
}

// onBaseRequest replies with a part of a base.
func (c *Core) onBaseRequest(p *peer, payload []byte) error {
	var m pb.BaseRequest
	if err := decode(payload, &m); err != nil {
		return err
	}
	part, err := c.bases.Answer(c.now, bases.Request{Base: m.Base, Known: m.Known,
		After: causal.Replica(m.After)}, c.cfg.basePart())
	if err != nil {
		return err
	}
	out := &pb.BasePart{Base: part.Base, From: part.From, After: uint64(part.After),
		Numbers: part.Numbers, Last: part.Last}
	for _, r := range part.Replicas {
		out.Replicas = append(out.Replicas, uint64(r))
	}
	c.send(p, wire.ReplicatorBase, encode(out))
	return nil
}

// basePart returns the number of entries of a base in one message.
func (c Config) basePart() int { return min(12_000, max(1, c.PartBytes/5)) }

// onBase takes a part of the base that is being fetched, and reads what waited for the base when it
// is complete.
func (c *Core) onBase(p *peer, payload []byte) error {
	var m pb.BasePart
	if err := decode(payload, &m); err != nil {
		return err
	}
	part := bases.Part{Base: m.Base, From: m.From, After: causal.Replica(m.After),
		Numbers: m.Numbers, Last: m.Last}
	for _, r := range m.Replicas {
		part.Replicas = append(part.Replicas, causal.Replica(r))
	}
	waited, ask, done, err := c.bases.Take(c.now, p.ID, part, c.Seen(), c.cfg.baseLimits())
	if err != nil {
		return err
	}
	if ask {
		if c.in.Busy() { // it probably waits for this base
			c.in.Extend(c.now)
		}
		c.askBase(p)
	}
	if done {
		c.stats.Bases++
	}
	for _, ev := range waited {
		c.receive(ev)
	}
	return nil
}
