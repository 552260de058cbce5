package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// refilling is what belongs to the answer in flight. Its parts are collected separately and applied
// in one step when all have arrived; pushes and own updates continue meanwhile [R20].
type refilling struct {
	have   causal.Vector
	copied history.State // the state at the time of the request, for a comparison
	whole  bool          // this replica's own state is damaged and will be replaced by the answer
	stage  stage
}

// ids are the ids of requests, answers and removals.
type ids struct{ last uint64 }

// next returns an id for a request or an answer. It differs from every id that this replica used
// before it was restored from a snapshot [R4].
func (i *ids) next(now time.Time) uint64 {
	i.last = max(i.last+1, uint64(max(now.UnixMilli(), 0)))
	return i.last
}

// intake is the answer that this replica receives.
type intake struct{ transfer.In[refilling] }

// send sends the request to p, for the first time or again.
func (in *intake) send(s *step, p *peer, b *vectors) {
	r := in.Content()
	m := &pb.Request{Id: in.ID(), Have: b.out(r.have), Whole: r.whole}
	if !in.Mistrusts() {
		m.Keys = uint64(r.copied.Keys.Len())
	}
	s.send(p, wire.ReplicatorRequest, encode(m))
}

// nudge repeats how far the answer has got, if it is time to.
func (in *intake) nudge(s *step, ps peers, b *vectors) {
	due, again := in.Nudge(s.now)
	if !due {
		return
	}
	p := ps.of(in.From())
	switch {
	case p == nil || p.replica == 0:
	case again:
		in.send(s, p, b)
	default:
		in.more(s, p)
	}
}

func (in *intake) more(s *step, p *peer) {
	m := in.More()
	s.send(p, wire.ReplicatorMore,
		encode(&pb.More{Request: m.Request, Answer: m.Answer, Next: uint32(m.Next)}))
}

// onCompare replies with cells of the sketch of the state at the time of the request.
func (in *intake) onCompare(s *step, p *peer, payload []byte) error {
	var m pb.Compare
	if err := decode(payload, &m); err != nil {
		return err
	}
	if !in.Of(p.ID, m.Request, m.Answer) {
		return nil
	}
	cells, some, err := in.Cells(s.now,
		transfer.Compare{From: int(m.From), Count: int(m.Count)},
		func(r *refilling) *sketch.Sketch { return r.copied.Sketch() })
	if some {
		s.send(p, wire.ReplicatorCells, encode(&pb.Cells{Request: cells.Request,
			Answer: cells.Answer, From: m.From, Sums: cells.Sums, Checks: cells.Checks,
			Counts: cells.Counts}))
	}
	return err
}

// ask asks p for everything that this replica lacks, or for the whole state, unless an answer is in
// flight already.
func (in *intake) ask(h herald, p *peer, whole bool) {
	if in.Begin(h.now, h.ids.next(h.now), p.ID,
		refilling{have: h.Seen(), copied: h.history.State(), whole: whole}) {
		in.send(h.step, p, h.bases)
	}
}

// onPart collects a part of the answer. It ignores parts of any other answer.
func (c *Core) onPart(p *peer, payload []byte) error {
	var m pb.Part
	if err := decode(payload, &m); err != nil {
		return err
	}
	if !c.in.Of(p.ID, m.Request, m.Answer) {
		return nil
	}
	if s := &c.in.Content().stage; len(m.Base) > 0 && s.base.Vector().Len() == 0 {
		v, ok := c.bases.Find(c.now, m.Base)
		if !ok && len(m.Base) == len(causal.Digest{}) {
			return bases.UnknownError(m.Base)
		}
		s.base = bases.Named(m.Base, v)
	}
	done, more, err := c.in.Part(c.now,
		transfer.Part{Index: int(m.Index), Last: m.Last, Data: m.Data},
		func(r *refilling, data []byte) error { return r.stage.feed(data) })
	switch {
	case done:
		r := c.in.Take()
		if err = c.adopt(p, &r); err != nil {
			c.in.Bad(c.now)
		}
	case more:
		c.in.more(&c.step, p)
	}
	return err
}

// adopt applies a complete answer in one step.
func (c *Core) adopt(p *peer, r *refilling) error {
	s, before := &r.stage, c.Seen()
	if err := s.end(); err != nil {
		return err
	}
	if s.head.state {
		st, err := s.state(r.copied)
		if err != nil {
			c.in.Mistrust(true)
			return err
		}
		c.in.Mistrust(false)
		if !c.cluster().confirmAnswer(p, s.head) {
			return nil
		}
		if r.whole {
			c.in.mended(c.herald(), c.peers, st)
		} else {
			c.note(c.history.Join(st), c.Seen(), &c.bases)
		}
		c.stats.Bulks++
		if s.head.partial {
			c.stats.Compared++
		}
	} else {
		d, err := s.delta()
		if err != nil {
			return err
		}
		if !d.Base.Leq(c.Seen()) {
			return malformed("answer starts at %v", d.Base)
		}
		if !c.cluster().confirmAnswer(p, s.head) {
			return nil
		}
		c.note(c.history.Apply(d), c.Seen(), &c.bases)
		c.stats.Deltas++
	}
	c.history.TakeHashes(s.head.head, before, s.head.hashes)
	c.rhythm.hasten(c.now, c.cfg.Grace)
	if c.Seen().Get(p.replica) > before.Get(p.replica) {
		p.owed = c.Seen().Get(p.replica)
	}
	c.cluster().answered(p, s.head)
	return nil
}

// confirmAnswer records what p has seen according to its answer. It returns false if this replica
// has to begin anew.
func (c cluster) confirmAnswer(p *peer, h head) bool {
	return c.heard(p, h.head) && c.confirm(p, h.head.Get(c.Replica()), h.hashes[c.Replica()],
		h.ready && h.members == c.members.Digest())
}

// mended installs the state of another replica, since this one's is damaged [R27]. If that is not
// possible, it waits for the next answer, which may be of a later moment.
func (in *intake) mended(h herald, ps peers, s history.State) {
	ch, ok := h.history.Replace(s)
	if !ok {
		in.Bad(h.now)
		return
	}
	h.note(ch, h.Seen(), h.bases)
	h.stats.Mended++
	h.emit(Mended{})
	for _, p := range ps {
		p.vote = stateVote{}
	}
}
