package core

import (
	"math"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/field"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// answer is what this replica tells a member that asked: the source of the parts, and the state
// that they are of. The receiver's next request starts there [R18].
type answer struct {
	source
	pin history.State
}

// Take implements transfer.Stream.
func (a *answer) Take(size int) ([]byte, bool) { return a.take(size) }

// Sketch implements transfer.Stream.
func (a *answer) Sketch() *sketch.Sketch { return a.pin.Sketch() }

// Narrow implements transfer.Stream.
func (a *answer) Narrow(theirs, mine []uint64) {
	a.only = a.pin.Differing(mine)
	a.head.partial, a.head.differing = true, theirs
	a.head.records = uint64(len(a.only))
}

// outlet are the answers that this replica sends.
type outlet struct{ transfer.Out[*answer] }

// proceed sends what continues the answer to p.
func (out *outlet) proceed(s *step, p *peer, next transfer.Sends[*answer]) {
	if m := next.Compare; m != nil {
		s.send(p, wire.ReplicatorCompare, encode(&pb.Compare{Request: m.Request, Answer: m.Answer,
			From: uint32(m.From), Count: uint32(m.Count)}))
	}
	for _, m := range next.Parts {
		b := field.Number(make([]byte, 0, len(m.Data)+96), 1, m.Request)
		b = field.Number(b, 2, uint64(m.Index))
		b = field.Flag(b, 3, m.Last)
		b = field.Message(b, 4, m.Data)
		b = field.Number(b, 5, m.Answer)
		s.send(p, wire.ReplicatorPart, field.Text(b, 6, next.Stream.enc.base.Name()))
	}
}

func (out *outlet) onMore(s *step, p *peer, payload []byte) error {
	var m pb.More
	if err := decode(payload, &m); err != nil {
		return err
	}
	out.proceed(s, p, out.More(s.now, p.ID, transfer.More{Request: m.Request, Answer: m.Answer,
		Next: int(min(m.Next, math.MaxInt32))}))
	return nil
}

func (out *outlet) onCells(s *step, p *peer, payload []byte) error {
	var m pb.Cells
	if err := decode(payload, &m); err != nil {
		return err
	}
	next, err := out.Cells(s.now, p.ID, transfer.Cells{Request: m.Request, Answer: m.Answer,
		From: int(m.From), Sums: m.Sums, Checks: m.Checks, Counts: m.Counts})
	out.proceed(s, p, next)
	return err
}

// pinned returns the vectors of the answers in flight. Later answers continue from them, so the log
// keeps the events after them.
func (out *outlet) pinned() (pins []causal.Vector) {
	for a := range out.Streams() {
		pins = append(pins, a.pin.Seen)
	}
	return pins
}

// onRequest answers with a closed delta if the log reaches back far enough, and otherwise with the
// current state [R16, R18]. Any member may ask any other: the answer is computed from state, so the
// events of a departed replica are served like any others [R8].
func (out *outlet) onRequest(c cluster, in *intake, p *peer, payload []byte) error {
	var m pb.Request
	if err := decode(payload, &m); err != nil {
		return err
	}
	have, err := c.bases.in(c.now, m.Have)
	if err != nil {
		return err
	}
	if !c.heard(p, have) {
		return nil
	}
	sends, fresh := out.Asked(c.now, p.ID, m.Id)
	if !fresh {
		out.proceed(c.step, p, sends)
		return nil
	}
	a := &answer{pin: c.history.State(), source: source{keys: c.history.Keys(), head: head{
		head: c.Seen(), ready: c.counts(), sum: c.history.Sum(), members: c.members.spoken(c.disk),
		hashes:   hashesOut(c.history, c.peers, c.members),
		entering: c.members.entering, kept: c.disk.kept}}}
	compared := 0
	if d, ok := c.history.Since(have); ok && !m.Whole {
		a.events = d.Events
		a.head.base, a.head.records = d.Base, uint64(len(d.Events))
	} else {
		a.head.state, a.head.records = true, uint64(c.history.Keys().Len())
		if m.Keys >= uint64(c.cfg.CompareKeys) && m.Keys < transfer.MaxCompared &&
			c.history.Keys().Len() > 0 {
			compared = int(m.Keys)
		}
	}
	a.enc.base = c.bases.Own()
	out.proceed(c.step, p, out.Begin(c.now, p.ID, c.ids.next(c.now), a, compared))
	in.follow(c.herald, p, have)
	return nil
}
