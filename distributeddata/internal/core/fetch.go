package core

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// unknownBaseError is the error of a message that names an unknown base.
type unknownBaseError causal.Digest

func (unknownBaseError) Error() string { return "core: unknown base" }

// fetch is the one base that this replica is fetching [R39]. It arrives in parts, each requested
// when the previous one has arrived. It is accepted if its digest is the requested one.
type fetch struct {
	digest   causal.Digest
	member   string
	begun    bool
	from     base         // the parts are differences from it
	got      []causal.Dot // the entries received so far
	nudge    time.Time    // when to ask again
	deadline time.Time    // for the next progress
}

// after returns the replica of the last received entry.
func (f *fetch) after() causal.Replica {
	if len(f.got) == 0 {
		return 0
	}
	return f.got[len(f.got)-1].Replica
}

// await queues a message until the base that it names is known, if there is room, and requests the
// base from its sender. A message that is not queued counts as lost.
func (c *Core) await(ev Receive, digest causal.Digest) {
	p := c.peer(ev.Member)
	if p == nil || p.replica == 0 || c.fetch == nil && c.now.Before(c.fetchAfter) {
		return
	}
	if len(c.awaiting) < c.cfg.WindowCount && c.awaitingBytes+len(ev.Payload) <= c.cfg.WindowBytes {
		c.awaiting, c.awaitingBytes = append(c.awaiting, ev), c.awaitingBytes+len(ev.Payload)
		c.stats.Awaiting++
	}
	if c.fetch == nil {
		c.fetch = &fetch{digest: digest, member: p.ID, deadline: c.now.Add(c.cfg.Patience)}
		c.sendBaseRequest(p)
	}
}

func (c *Core) sendBaseRequest(p *peer) {
	f := c.fetch
	f.nudge = c.now.Add(c.cfg.Grace)
	m := &pb.BaseRequest{Base: f.digest[:], After: uint64(f.after())}
	if f.begun && f.from.vector.Len() > 0 {
		m.Known = [][]byte{f.from.name()}
	} else if !f.begun {
		for _, k := range c.bases {
			m.Known = append(m.Known, slices.Clone(k.digest[:]))
		}
	}
	c.send(p, wire.ReplicatorBaseRequest, encode(m))
}

// onBaseRequest replies with a part of a base.
func (c *Core) onBaseRequest(p *peer, payload []byte) error {
	var m pb.BaseRequest
	if err := decode(payload, &m); err != nil {
		return err
	}
	if len(m.Known) > maxBases {
		return malformed("%d known bases, limit %d", len(m.Known), maxBases)
	}
	out := &pb.BasePart{Base: m.Base, After: m.After}
	if v, ok := c.known(m.Base); ok {
		var from causal.Vector
		out.From, from = c.nearest(v, m.Known)
		out.Last = true
		for r, n := range v.Differing(from) {
			if uint64(r) <= m.After {
				continue
			}
			if len(out.Replicas) == c.basePart() {
				out.Last = false
				break
			}
			out.Replicas, out.Numbers = append(out.Replicas, uint64(r)), append(out.Numbers, n[0])
		}
	}
	c.send(p, wire.ReplicatorBase, encode(out))
	return nil
}

// basePart returns the number of entries of a base in one message.
func (c *Core) basePart() int { return min(12_000, max(1, c.cfg.PartBytes/5)) }

// nearest returns the first of the named vectors from which v differs in fewer entries than v has.
func (c *Core) nearest(v causal.Vector, names [][]byte) ([]byte, causal.Vector) {
	for _, name := range names {
		from, ok := c.known(name)
		if !ok {
			continue
		}
		differing := 0
		for range v.Differing(from) {
			if differing++; differing >= v.Len() {
				break
			}
		}
		if differing < v.Len() {
			return name, from
		}
	}
	return nil, causal.Vector{}
}

// onBase handles a part of the base being fetched.
func (c *Core) onBase(p *peer, payload []byte) error {
	var m pb.BasePart
	if err := decode(payload, &m); err != nil {
		return err
	}
	f := c.fetch
	if f == nil || f.member != p.ID || string(m.Base) != string(f.digest[:]) ||
		m.After != uint64(f.after()) {
		return nil
	}
	gone := len(m.Replicas) == 0 && !m.Last // one side has dropped a base since
	if !gone && !f.begun && len(m.From) > 0 {
		_, ok := c.known(m.From)
		gone = !ok
	}
	if gone {
		c.abandonFetch()
		return nil
	}
	if err := f.take(&m, c.known); err != nil {
		c.abandonFetch()
		return err
	}
	if m.Last {
		return c.endFetch()
	}
	f.deadline = c.now.Add(c.cfg.Patience)
	if c.incoming != nil { // it probably waits for this base
		c.progress()
	}
	c.sendBaseRequest(p)
	return nil
}

// lookup returns the base with a name.
type lookup func(name []byte) (causal.Vector, bool)

// take adds the entries of a part.
func (f *fetch) take(m *pb.BasePart, known lookup) error {
	if !f.begun {
		v, ok := causal.Vector{}, len(m.From) == 0
		if !ok {
			v, ok = known(m.From)
		}
		if !ok {
			return malformed("part of a base, relative to an unknown vector")
		}
		f.begun = true
		if v.Len() > 0 {
			f.from = baseOf(v)
		}
	}
	if string(m.From) != string(f.from.name()) || len(f.got)+len(m.Replicas) > MaxReplicas {
		return malformed("part of a base, after %d entries", len(f.got))
	}
	dots, err := differences(m.Replicas, m.Numbers, f.from.vector, f.after())
	f.got = append(f.got, dots...)
	return err
}

// endFetch accepts a complete base if it is the requested one, and processes the messages that
// waited for it.
func (c *Core) endFetch() error {
	f := c.fetch
	b := baseOf(f.from.vector.Apply(f.got))
	if b.digest != f.digest || b.vector.Len() > MaxReplicas {
		c.abandonFetch()
		return malformed("base of %d entries does not match its digest", b.vector.Len())
	}
	c.learn(b)
	c.stats.Bases++
	waited := c.awaiting
	c.fetch, c.awaiting, c.awaitingBytes = nil, nil, 0
	for _, ev := range waited {
		c.receive(ev)
	}
	return nil
}

// abandonFetch drops the base being fetched and the messages that wait for it: it will be named
// again.
func (c *Core) abandonFetch() {
	c.fetch, c.awaiting, c.awaitingBytes = nil, nil, 0
	c.fetchAfter = c.now.Add(c.cfg.Grace)
}

// pursueFetch repeats a request that was not answered, and gives up at the deadline.
func (c *Core) pursueFetch() {
	f := c.fetch
	if f == nil || c.now.Before(f.nudge) {
		return
	}
	if p := c.peer(f.member); p != nil && p.replica != 0 && c.now.Before(f.deadline) {
		c.sendBaseRequest(p)
		return
	}
	c.abandonFetch()
}

// differences validates entries that differ from a base; their replicas must come after the replica
// after.
func differences[T ~uint64](ids []T, numbers []uint64, base causal.Vector,
	after causal.Replica) ([]causal.Dot, error) {
	if len(ids) != len(numbers) {
		return nil, malformed("vector of %d replicas and %d numbers", len(ids), len(numbers))
	}
	dots := make([]causal.Dot, len(ids))
	for i, id := range ids {
		d := causal.Dot{Replica: causal.Replica(id), N: numbers[i]}
		if d.Replica <= after || d.N == math.MaxUint64 || d.N == base.Get(d.Replica) {
			return nil, malformed("vector at %d", i)
		}
		dots[i], after = d, d.Replica
	}
	return dots, nil
}

// makeVector returns the vector made of the named base and the entries that differ from it.
func makeVector[T ~uint64](name []byte, ids []T, numbers []uint64,
	known lookup) (causal.Vector, error) {
	base := causal.Vector{}
	switch len(name) {
	case 0:
	case len(causal.Digest{}):
		v, ok := known(name)
		if !ok {
			return base, unknownBaseError(name)
		}
		base = v
	default:
		return base, malformed("name of a base of %d bytes", len(name))
	}
	dots, err := differences(ids, numbers, base, 0)
	if err != nil {
		return causal.Vector{}, err
	}
	v := base.Apply(dots)
	if v.Len() > MaxReplicas {
		return causal.Vector{}, malformed("vector of %d replicas, limit %d", v.Len(), MaxReplicas)
	}
	return v, nil
}

// asUnknown returns the digest of the unknown base that err reports.
func asUnknown(err error) (d causal.Digest, ok bool) {
	if err == nil {
		return d, false // the common case; errors.As moves its target to the heap
	}
	var u unknownBaseError
	ok = errors.As(err, &u)
	return causal.Digest(u), ok
}
