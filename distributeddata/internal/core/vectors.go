package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// vectors are told as the entries in which they differ from a base [R37]; see package bases.
type vectors struct {
	bases.Set[Receive]
	limits bases.Limits
	part   int // number of entries of a base in one message
}

func newVectors(cfg Config) vectors {
	return vectors{limits: cfg.baseLimits(), part: min(12_000, max(1, cfg.PartBytes/5))}
}

// find returns what finds the base with a name.
func (b *vectors) find(now time.Time) bases.Find {
	return func(name []byte) (causal.Vector, bool) { return b.Find(now, name) }
}

// out returns a vector as it is sent, and in one that was received.
func (b *vectors) out(v causal.Vector) *pb.VersionVector {
	name, ids, numbers := b.Own().List(v)
	out := &pb.VersionVector{Base: name, Replicas: make([]uint64, len(ids)), Numbers: numbers}
	for i, id := range ids {
		out.Replicas[i] = uint64(id)
	}
	return out
}

func (b *vectors) in(now time.Time, v *pb.VersionVector) (causal.Vector, error) {
	return bases.Vector(v.GetBase(), v.GetReplicas(), v.GetNumbers(), b.find(now))
}

// renew adds departed replicas to the base [R38].
func (b *vectors) renew(now time.Time, seen causal.Vector, ps peers, me causal.Replica) {
	var runs map[causal.Replica]bool
	b.Renew(now, seen, func(r causal.Replica) bool {
		if runs == nil {
			runs = ps.running(me)
		}
		return runs[r]
	})
}

// await keeps a message of p until the base that it names is known, if there is room, and requests
// the base from p. A message that is not kept counts as lost [R39].
func (b *vectors) await(s *step, p *peer, ev Receive, digest causal.Digest) (kept bool) {
	if p == nil || p.replica == 0 {
		return false
	}
	kept, ask := b.Await(s.now, ev, len(ev.Payload), p.ID, digest, b.limits)
	if ask {
		b.ask(s, p)
	}
	return kept
}

func (b *vectors) ask(s *step, p *peer) {
	m := b.Ask(s.now, b.limits)
	s.send(p, wire.ReplicatorBaseRequest,
		encode(&pb.BaseRequest{Base: m.Base, Known: m.Known, After: uint64(m.After)}))
}

// pursue repeats a request that was not answered, and gives up at the deadline.
func (b *vectors) pursue(s *step, ps peers) {
	member, _, ok := b.Fetching()
	if !ok {
		return
	}
	p := ps.of(member)
	if b.Pursue(s.now, p != nil && p.replica != 0, b.limits) {
		b.ask(s, p)
	}
}

// onRequest replies with a part of a base.
func (b *vectors) onRequest(s *step, p *peer, payload []byte) error {
	var m pb.BaseRequest
	if err := decode(payload, &m); err != nil {
		return err
	}
	part, err := b.Answer(s.now, bases.Request{Base: m.Base, Known: m.Known,
		After: causal.Replica(m.After)}, b.part)
	if err != nil {
		return err
	}
	out := &pb.BasePart{Base: part.Base, From: part.From, After: uint64(part.After),
		Numbers: part.Numbers, Last: part.Last}
	for _, r := range part.Replicas {
		out.Replicas = append(out.Replicas, uint64(r))
	}
	s.send(p, wire.ReplicatorBase, encode(out))
	return nil
}

// probe asks p for its vector, and to reply only when it covers want.
func (b *vectors) probe(s *step, p *peer, want causal.Vector, m *pb.Probe) {
	m.Want = b.out(want)
	s.emit(Send{Member: p.ID, To: p.replica, Manifest: wire.ReplicatorProbe, Payload: encode(m),
		passes: want.Len() == 0})
}

func (c Config) baseLimits() bases.Limits {
	return bases.Limits{Count: c.WindowCount, Bytes: c.WindowBytes, Pause: c.Grace,
		Patience: c.Patience}
}

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
	waited, ask, done, err := c.bases.Take(c.now, p.ID, part, c.Seen(), c.bases.limits)
	if err != nil {
		return err
	}
	if ask {
		if c.in.Busy() { // it probably waits for this base
			c.in.Extend(c.now)
		}
		c.bases.ask(&c.step, p)
	}
	if done {
		c.stats.Bases++
	}
	for _, ev := range waited {
		c.receive(ev)
	}
	return nil
}
