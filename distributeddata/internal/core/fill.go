package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// request is the one answer that this replica is receiving. Its parts are collected separately and
// applied in one step when all have arrived; pushes and own updates continue meanwhile [R20].
type request struct {
	id       uint64
	answer   uint64 // id of the accepted answer: the first one that arrived; 0 before
	member   string
	deadline time.Time // for the next progress
	nudge    time.Time // when to repeat how far it has got
	have     causal.Vector
	copied   State // the state at the time of the request, for a comparison
	sketch   *sketch.Sketch
	whole    bool // this replica's own state is damaged and will be replaced by the answer
	stage    stage
	next     int            // index of the next part
	ahead    map[int][]byte // parts that arrived before a missing one
	last     int            // index of the last part, -1 while unknown
	size     int64
}

// request asks p for everything that this replica lacks, unless an answer is in flight already.
func (c *Core) request(p *peer) { c.ask(p, false) }

func (c *Core) ask(p *peer, whole bool) {
	if c.incoming != nil || c.now.Before(c.askAfter) {
		return
	}
	c.incoming = &request{id: c.newID(), member: p.ID, have: c.seen, copied: c.state(),
		whole: whole, last: -1}
	c.progress()
	c.incoming.nudge = c.now.Add(c.cfg.Grace) // soon, the first time
	c.sendRequest(p)
}

// newID returns an id for a request or an answer. It differs from every id that this replica used
// before it was restored from a snapshot [R4].
func (c *Core) newID() uint64 {
	c.nextID = max(c.nextID+1, uint64(max(c.now.UnixMilli(), 0)))
	return c.nextID
}

func (c *Core) sendRequest(p *peer) {
	r := c.incoming
	m := &pb.Request{Id: r.id, Have: c.vectorOut(r.have), Whole: r.whole}
	if !c.distrust {
		m.Keys = uint64(r.copied.Keys.Len())
	}
	c.send(p, wire.ReplicatorRequest, encode(m))
}

// progress extends the deadline of the answer in flight.
func (c *Core) progress() {
	c.incoming.deadline = c.now.Add(c.cfg.Patience)
	c.incoming.nudge = c.now.Add(c.cfg.Patience / 4)
}

// nudgeAnswer repeats how far the answer has got: parts, or the previous report, may have been
// lost.
func (c *Core) nudgeAnswer() {
	r := c.incoming
	if r == nil || c.now.Before(r.nudge) {
		return
	}
	r.nudge = c.now.Add(c.cfg.Patience / 4)
	p := c.peer(r.member)
	switch {
	case p == nil || p.replica == 0:
	case r.next == 0 && r.sketch == nil:
		c.sendRequest(p)
	default:
		c.more(p)
	}
}

func (c *Core) more(p *peer) {
	c.send(p, wire.ReplicatorMore,
		encode(&pb.More{Request: c.incoming.id, Answer: c.incoming.answer,
			Next: uint32(c.incoming.next)}))
}

// of reports whether a message of p belongs to the accepted answer. A member that lost sight of
// this one has forgotten that it answered, and answers a duplicate or late request again, from a
// different state. The parts of two answers must not mix.
func (r *request) of(p *peer, request, answer uint64) bool {
	if r.member != p.ID || r.id != request {
		return false
	}
	if r.answer == 0 {
		r.answer = answer
	}
	return r.answer == answer
}

// onCompare replies with cells of the sketch of the state at the time of the request.
func (c *Core) onCompare(p *peer, payload []byte) error {
	var m pb.Compare
	if err := decode(payload, &m); err != nil {
		return err
	}
	r := c.incoming
	if r == nil || !r.of(p, m.Request, m.Answer) || r.next > 0 {
		return nil
	}
	if m.Count == 0 || m.Count > cellsAtOnce || m.From > maxCells {
		return malformed("asked for %d cells from %d on", m.Count, m.From)
	}
	if r.sketch == nil {
		r.sketch = r.copied.sketch()
	}
	c.progress()
	from := int(m.From)
	cells := r.sketch.Cells(from + int(m.Count))[from:]
	c.send(p, wire.ReplicatorCells, encode(cellsOut(r.id, r.answer, from, cells, r.sketch.Len())))
	return nil
}

// onPart collects a part of the answer. It ignores parts of any other answer.
func (c *Core) onPart(p *peer, payload []byte) error {
	var m pb.Part
	if err := decode(payload, &m); err != nil {
		return err
	}
	r := c.incoming
	if r == nil || !r.of(p, m.Request, m.Answer) {
		return nil
	}
	if len(m.Base) > 0 && r.stage.base.Vector().Len() == 0 {
		v, ok := c.known(m.Base)
		if !ok && len(m.Base) == len(causal.Digest{}) {
			return bases.UnknownError(m.Base)
		}
		r.stage.base = bases.Named(m.Base, v)
	}
	before := r.next
	err := r.collect(&m)
	switch {
	case err != nil:
		c.incoming = nil
	case r.last >= 0 && r.next > r.last:
		c.incoming = nil
		err = c.adopt(p, r)
	case r.next > before:
		c.progress()
		c.more(p)
	}
	if err != nil {
		c.askAfter = c.now.Add(c.cfg.BeatInterval) // the next answer may not be better
	}
	return err
}

// collect stores a part, and passes all contiguous parts to the stage.
func (r *request) collect(m *pb.Part) error {
	n := int(m.Index)
	if n < r.next || n >= r.next+2*credit || r.ahead[n] != nil {
		return nil // received before, or cannot have been sent yet
	}
	if len(m.Data) == 0 || m.Last && r.last >= 0 && r.last != n || r.last >= 0 && n > r.last {
		return malformed("part %d of an answer", n)
	}
	if m.Last {
		r.last = n
	}
	if r.size += int64(len(m.Data)); r.size > maxAnswer {
		return malformed("answer over %d bytes", maxAnswer)
	}
	if r.ahead == nil {
		r.ahead = map[int][]byte{}
	}
	r.ahead[n] = m.Data
	for r.ahead[r.next] != nil {
		if err := r.stage.feed(r.ahead[r.next]); err != nil {
			return err
		}
		delete(r.ahead, r.next)
		r.next++
	}
	return nil
}

// adopt applies a complete answer in one step.
func (c *Core) adopt(p *peer, r *request) error {
	s, before := &r.stage, c.seen
	if err := s.end(); err != nil {
		return err
	}
	if s.head.state {
		st, err := s.state(r.copied)
		if err != nil {
			c.distrust = true // compare nothing until a whole state has arrived
			return err
		}
		c.distrust = false
		if !c.heard(p, st.Seen) || !c.confirm(p, st.Seen.Get(c.me), s.head.prints[c.me],
			s.head.ready && s.head.members == c.roll.digest) {
			return nil
		}
		if r.whole {
			c.mended(st)
		} else {
			c.note(c.join(st))
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
		if !d.base.Leq(c.seen) {
			return malformed("answer starts at %v", d.base)
		}
		if !c.heard(p, d.head) || !c.confirm(p, d.head.Get(c.me), s.head.prints[c.me],
			s.head.ready && s.head.members == c.roll.digest) {
			return nil
		}
		c.note(c.apply(d))
		c.stats.Deltas++
	}
	c.printsIn(s.head, before)
	c.spread()
	if c.seen.Get(p.replica) > before.Get(p.replica) {
		p.owed = c.seen.Get(p.replica)
	}
	c.answered(p, s.head)
	return nil
}

// mended installs the state of another replica, since this one's is damaged [R27]. If that is not
// possible, it waits for the next answer, which may be of a later moment.
func (c *Core) mended(s State) {
	ch, ok := c.replace(s)
	if !ok {
		c.askAfter = c.now.Add(c.cfg.BeatInterval)
		return
	}
	c.note(ch)
	c.stats.Mended++
	c.emit(Mended{})
	for _, p := range c.peers {
		p.opinion = opinion{}
	}
}

// expireAnswers gives up answers that made no progress in time. If a request was not answered, the
// next heartbeat shows the lag again.
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
