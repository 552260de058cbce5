package core

import (
	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// receive handles a message from a member of the view that is signed by its present replica and
// addressed to this one [R2]. All other messages are counted and dropped.
func (c *Core) receive(ev Receive) {
	p := c.peers.of(ev.Member)
	if p == nil || ev.From == 0 || ev.To != 0 && ev.To != c.Replica() {
		c.stats.Strangers++
		return
	}
	if ev.Manifest == wire.ReplicatorBeat {
		c.bases.tally(&c.step, p, ev, c.onBeat(p, ev))
		return
	}
	if ev.Manifest == wire.ReplicatorMembers {
		c.bases.tally(&c.step, p, ev, c.cluster().onMembers(p, ev))
		return
	}
	if p.replica != ev.From || ev.To == 0 {
		c.stats.Strangers++
		return
	}
	if ev.Manifest == wire.ReplicatorPush || ev.Manifest == wire.ReplicatorPart {
		if c.disk.crowded() {
			return // the sender is asked for it later
		}
		c.disk.gather(c.now, len(ev.Payload))
	}
	c.bases.tally(&c.step, p, ev, c.dispatch(p, ev))
}

// tally counts undecodable messages. A message that names an unknown base is queued instead.
func (b *vectors) tally(s *step, p *peer, ev Receive, err error) {
	if d, ok := bases.Unknown(err); ok {
		if b.await(s, p, ev, d) {
			s.stats.Awaiting++
		}
	} else if err != nil {
		s.stats.Malformed++
	}
}

// dispatch passes a message to its handler, which returns an error if the message cannot be
// decoded.
func (c *Core) dispatch(p *peer, ev Receive) error {
	switch ev.Manifest {
	case wire.ReplicatorPush:
		return c.inbox().onPush(p, ev.Payload)
	case wire.ReplicatorAck:
		return c.onAck(p, ev.Payload)
	case wire.ReplicatorRequest:
		return c.out.onRequest(c.cluster(), &c.in, p, ev.Payload)
	case wire.ReplicatorPart:
		return c.onPart(p, ev.Payload)
	case wire.ReplicatorMore:
		return c.out.onMore(&c.step, p, ev.Payload)
	case wire.ReplicatorCompare:
		return c.in.onCompare(&c.step, p, ev.Payload)
	case wire.ReplicatorCells:
		return c.out.onCells(&c.step, p, ev.Payload)
	case wire.ReplicatorProbe:
		return c.calls().onProbe(p, ev.Payload)
	case wire.ReplicatorProbeReply:
		return c.calls().onProbeReply(p, ev.Payload)
	case wire.ReplicatorBaseRequest:
		return c.bases.onRequest(&c.step, p, ev.Payload)
	case wire.ReplicatorBase:
		return c.onBase(p, ev.Payload)
	}
	return malformed("unknown manifest %v", ev.Manifest)
}

func (c *Core) onAck(p *peer, payload []byte) error {
	a, err := decodeAck(payload)
	if err != nil {
		return err
	}
	p.ready = a.ready
	c.waits.Stir()
	cluster := c.cluster()
	cluster.confirm(p, a.n, a.hash, cluster.under(p, a.members) && a.ready)
	return nil
}

// heard records the whole vector of a peer. An acknowledgement says less and is recorded
// separately, since dropping marks requires what the peer had seen and done at the same moment
// [R15]. If the peer knows of more events of this replica than the replica itself, numbers of this
// replica were lost [R3]. Whether the peer covers own events is decided by messages that carry
// event hashes [R4]. heard returns false if this replica has to begin anew.
func (c cluster) heard(p *peer, v causal.Vector) bool {
	if !c.history.Owns(v.Get(c.Replica()), 0) {
		c.restored = true
		return false
	}
	p.take(v)
	c.history.CopiedBefore(v)
	return true
}
