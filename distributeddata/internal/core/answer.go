package core

import (
	"math"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
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

// onRequest answers with a closed delta if the log reaches back far enough, and otherwise with the
// current state [R16, R18]. Any member may ask any other: the answer is computed from state, so the
// events of a departed replica are served like any others [R8].
func (c *Core) onRequest(p *peer, payload []byte) error {
	var m pb.Request
	if err := decode(payload, &m); err != nil {
		return err
	}
	have, err := c.vectorIn(m.Have)
	if err != nil {
		return err
	}
	if !c.heard(p, have) {
		return nil
	}
	sends, fresh := c.out.Asked(c.now, p.ID, m.Id)
	if !fresh {
		c.continues(p, sends)
		return nil
	}
	a := &answer{pin: c.history.State(), source: source{keys: c.Keys(), head: head{head: c.Seen(),
		ready: c.counts(), sum: c.history.Sum(), members: c.spoken(),
		hashes:   c.hashesOut(),
		entering: c.roll.entering, kept: c.disk.kept}}}
	compared := 0
	if d, ok := c.history.Since(have); ok && !m.Whole {
		a.events = d.Events
		a.head.base, a.head.records = d.Base, uint64(len(d.Events))
	} else {
		a.head.state, a.head.records = true, uint64(c.Keys().Len())
		if m.Keys >= uint64(c.cfg.CompareKeys) && m.Keys < transfer.MaxCompared &&
			c.Keys().Len() > 0 {
			compared = int(m.Keys)
		}
	}
	a.enc.base = c.bases.Own()
	c.continues(p, c.out.Begin(c.now, p.ID, c.newID(), a, compared))
	c.follow(p, have)
	return nil
}

// continues sends what continues the answer to p.
func (c *Core) continues(p *peer, s transfer.Sends[*answer]) {
	if m := s.Compare; m != nil {
		c.send(p, wire.ReplicatorCompare, encode(&pb.Compare{Request: m.Request, Answer: m.Answer,
			From: uint32(m.From), Count: uint32(m.Count)}))
	}
	for _, m := range s.Parts {
		b := field.Number(make([]byte, 0, len(m.Data)+96), 1, m.Request)
		b = field.Number(b, 2, uint64(m.Index))
		b = field.Flag(b, 3, m.Last)
		b = field.Message(b, 4, m.Data)
		b = field.Number(b, 5, m.Answer)
		c.send(p, wire.ReplicatorPart, field.Text(b, 6, s.Stream.enc.base.Name()))
	}
}

func (c *Core) onMore(p *peer, payload []byte) error {
	var m pb.More
	if err := decode(payload, &m); err != nil {
		return err
	}
	c.continues(p, c.out.More(c.now, p.ID, transfer.More{Request: m.Request, Answer: m.Answer,
		Next: int(min(m.Next, math.MaxInt32))}))
	return nil
}

func (c *Core) onCells(p *peer, payload []byte) error {
	var m pb.Cells
	if err := decode(payload, &m); err != nil {
		return err
	}
	s, err := c.out.Cells(c.now, p.ID, transfer.Cells{Request: m.Request, Answer: m.Answer,
		From: int(m.From), Sums: m.Sums, Checks: m.Checks, Counts: m.Counts})
	c.continues(p, s)
	return err
}
