package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// credit is how many parts of an answer may be on their way at once.
const credit = 4

// maxParts bounds what a peer can make us set aside with the first part.
const maxParts = 1 << 14

// request is the one answer under way to this replica. Its parts are collected apart and applied in
// one step when all are there; pushes and own updates go on meanwhile [R15].
type request struct {
	id       uint64
	member   string
	deadline time.Time // for the next part
	parts    [][]byte  // nil where missing; empty before the first part
	got      int
	size     int
	bulk     bool
	ready    bool // the sender was, when it took the answer
}

// answer is one that this replica gives, cut into parts.
type answer struct {
	id       uint64
	parts    [][]byte
	next     int // first part not sent yet
	bulk     bool
	ready    bool
	head     causal.Vector // what the receiver will have seen: its next request starts there
	deadline time.Time
}

// request asks p for everything that this replica lacks, unless an answer is under way already.
func (c *Core) request(p *peer) {
	if c.incoming != nil {
		return
	}
	c.nextID++
	c.incoming = &request{id: c.nextID, member: p.ID, deadline: c.now.Add(c.cfg.Patience)}
	c.send(p, wire.ReplicatorRequest, encode(&pb.Request{Id: c.nextID, Have: vectorOut(c.seen)}))
}

// onRequest answers with a closed delta if the log reaches back far enough, else with the whole state
// [R11, R13]. Anybody may ask anybody: the answer is computed from state, so events of a replica that
// is gone are served like any other [R7a].
func (c *Core) onRequest(p *peer, payload []byte) error {
	var m pb.Request
	if err := decode(payload, &m); err != nil {
		return err
	}
	have, err := vectorIn(m.Have)
	if err != nil {
		return err
	}
	c.heard(p, have)
	if m.Id <= p.request {
		return nil // a doubled request: the parts of two answers must not mix under one id
	}
	p.request = m.Id
	a := &answer{id: m.Id, ready: c.ready, head: c.seen, deadline: c.now.Add(c.cfg.Patience)}
	var data []byte
	if d, ok := c.makeDelta(have); ok {
		data = encodeDelta(d)
	} else {
		data, a.bulk = encodeSnapshot(snapshot{c.seen, c.keys}), true
	}
	a.parts = slices.Collect(slices.Chunk(data, c.cfg.PartBytes))
	c.outgoing[p.ID] = a
	c.sendParts(p, a, credit)
	return nil
}

// sendParts sends the parts before the limit that have not been sent.
func (c *Core) sendParts(p *peer, a *answer, limit int) {
	for ; a.next < min(limit, len(a.parts)); a.next++ {
		c.send(p, wire.ReplicatorPart, encode(&pb.Part{
			Request: a.id, Index: uint32(a.next), Count: uint32(len(a.parts)), Bulk: a.bulk, Ready: a.ready, Data: a.parts[a.next],
		}))
	}
}

// onMore sends further parts of an answer.
func (c *Core) onMore(p *peer, payload []byte) error {
	var m pb.More
	if err := decode(payload, &m); err != nil {
		return err
	}
	if a := c.outgoing[p.ID]; a != nil && a.id == m.Request {
		a.deadline = c.now.Add(c.cfg.Patience)
		c.sendParts(p, a, int(m.Next)+credit)
	}
	return nil
}

// onPart collects a part. A part of any other answer than the one asked for is passed over.
func (c *Core) onPart(p *peer, payload []byte) error {
	var m pb.Part
	if err := decode(payload, &m); err != nil {
		return err
	}
	r := c.incoming
	if r == nil || r.member != p.ID || r.id != m.Request {
		return nil
	}
	if err := r.collect(&m); err != nil {
		c.incoming = nil
		return err
	}
	r.deadline = c.now.Add(c.cfg.Patience)
	if r.got < len(r.parts) {
		c.send(p, wire.ReplicatorMore, encode(&pb.More{Request: r.id, Next: uint32(r.prefix())}))
		return nil
	}
	c.incoming = nil
	return c.adopt(p, r)
}

func (r *request) collect(m *pb.Part) error {
	if len(r.parts) == 0 {
		if m.Count == 0 || m.Count > maxParts {
			return malformed("answer of %d parts", m.Count)
		}
		r.parts, r.bulk, r.ready = make([][]byte, m.Count), m.Bulk, m.Ready
	}
	if int(m.Count) != len(r.parts) || m.Index >= m.Count || m.Bulk != r.bulk || len(m.Data) == 0 {
		return malformed("part %d of %d in an answer of %d", m.Index, m.Count, len(r.parts))
	}
	if r.parts[m.Index] != nil {
		return nil
	}
	if r.size += len(m.Data); r.size > maxAnswer {
		return malformed("answer over %d bytes", maxAnswer)
	}
	r.parts[m.Index] = m.Data
	r.got++
	return nil
}

// prefix returns the number of parts that are there without a gap.
func (r *request) prefix() int {
	i := slices.IndexFunc(r.parts, func(b []byte) bool { return b == nil })
	if i < 0 {
		return len(r.parts)
	}
	return i
}

// adopt applies a complete answer in one step.
func (c *Core) adopt(p *peer, r *request) error {
	data := r.parts[0]
	if len(r.parts) > 1 {
		data = slices.Concat(r.parts...)
	}
	if r.bulk {
		s, err := decodeSnapshot(data)
		if err != nil {
			return err
		}
		c.heard(p, s.seen)
		c.join(s)
		c.stats.Bulks++
	} else {
		d, err := decodeDelta(data)
		if err != nil {
			return err
		}
		if !d.base.Leq(c.seen) {
			return malformed("answer starts at %v", d.base)
		}
		c.heard(p, d.head)
		c.apply(d)
		c.stats.Deltas++
	}
	p.refilled = true
	p.answered = p.answered || r.ready
	return nil
}

// join merges a whole state [R14]: an atom that one side has and the other has seen, but does not
// have, was removed.
func (c *Core) join(s snapshot) {
	before, mine := c.seen, c.keys
	pmap.Diff(mine, s.keys, causal.Store.Same, func(key string, a causal.Store, _ bool, b causal.Store, _ bool) bool {
		c.put(key, causal.Join(a, before, b, s.seen))
		return true
	})
	for d := range s.seen.All() {
		if d.N > before.Get(d.Replica) {
			c.log.skip(d.Replica, d.N)
		}
	}
	c.seen = before.Join(s.seen)
}

// expireAnswers gives up what did not go on in time. A request that nobody answered leaves the lag
// that led to it to the next heartbeat.
func (c *Core) expireAnswers() {
	if c.incoming != nil && !c.now.Before(c.incoming.deadline) {
		c.incoming = nil
	}
	for id, a := range c.outgoing {
		if !c.now.Before(a.deadline) {
			delete(c.outgoing, id)
		}
	}
}
