package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/internal/field"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// credit is the number of parts of an answer that may be in flight at once. stride is the number of
// parts made in one step, which bounds how long other work of the replica waits.
const credit, stride = 12, 2

// answer is an answer that this replica sends. Its parts are made as they are sent, so that a large
// answer neither blocks the replica nor fills the memory. Parts in flight are kept until they have
// arrived.
type answer struct {
	id       uint64 // of the request
	number   uint64 // of the answer; unique at this replica
	source   source
	parts    [][]byte // sent, and not known to have arrived
	first    int      // index of the first of these
	last     int      // index of the last part, -1 while unknown
	pin      State    // the answer's state; the receiver's next request starts there [R18]
	deadline time.Time
	compare  *comparison // nil once parts are sent
}

// comparison finds the keys that differ between two states.
type comparison struct {
	theirs []sketch.Cell
	keys   int // number of keys of the other side
	asked  int // number of cells asked for
	mine   *sketch.Sketch
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
	if a := c.outgoing[p.ID]; a != nil && a.id == m.Id {
		c.again(p, a) // none of the parts sent so far arrived
		return nil
	}
	if m.Id <= p.request && c.now.Before(p.asked.Add(c.cfg.Patience)) {
		return nil // a duplicate request: parts of two answers must not mix under one id
	}
	p.request, p.asked = m.Id, c.now
	a := &answer{id: m.Id, number: c.newID(), last: -1, pin: c.state()}
	a.source = source{keys: c.keys, head: head{head: c.seen, ready: c.counts(), sum: c.sum,
		prints: c.printsOut(), members: c.spoken(), entering: c.roll.entering,
		kept: c.disk.kept}}
	if d, ok := c.makeDelta(have); ok && !m.Whole {
		a.source.events = d.events
		a.source.head.base, a.source.head.records = d.base, uint64(len(d.events))
	} else {
		a.source.head.state, a.source.head.records = true, uint64(c.keys.Len())
		if m.Keys >= uint64(c.cfg.CompareKeys) && m.Keys < maxCompared && c.keys.Len() > 0 {
			a.compare = &comparison{keys: int(m.Keys)}
		}
	}
	a.source.enc.base = c.bases.Own()
	c.outgoing[p.ID] = a
	c.goOn(p, a)
	c.follow(p, have)
	return nil
}

// goOn sends the next parts if there is room for them. The receiver acknowledges parts one by one
// at first, so the number of parts in flight grows up to the credit.
func (c *Core) goOn(p *peer, a *answer) {
	a.deadline = c.now.Add(c.cfg.Patience)
	if a.compare != nil {
		c.askCells(p, a)
		return
	}
	for n := 0; n < stride && a.last < 0 && len(a.parts) < credit; n++ {
		part, last := a.source.take(c.cfg.PartBytes)
		a.parts = append(a.parts, part)
		if last {
			a.last = a.first + len(a.parts) - 1
		}
		c.sendPart(p, a, len(a.parts)-1)
	}
}

func (c *Core) sendPart(p *peer, a *answer, i int) {
	n := a.first + i
	b := field.Number(make([]byte, 0, len(a.parts[i])+96), 1, a.id)
	b = field.Number(b, 2, uint64(n))
	b = field.Flag(b, 3, n == a.last)
	b = field.Message(b, 4, a.parts[i])
	b = field.Number(b, 5, a.number)
	c.send(p, wire.ReplicatorPart, field.Text(b, 6, a.source.enc.base.Name()))
}

// again resends everything that has not arrived.
func (c *Core) again(p *peer, a *answer) {
	a.deadline = c.now.Add(c.cfg.Patience)
	if a.compare != nil {
		c.askCells(p, a)
		return
	}
	for i := range a.parts {
		c.sendPart(p, a, i)
	}
}

// onMore records which parts have arrived and sends further ones. If the receiver repeats itself,
// the parts in flight are lost.
func (c *Core) onMore(p *peer, payload []byte) error {
	var m pb.More
	if err := decode(payload, &m); err != nil {
		return err
	}
	a := c.outgoing[p.ID]
	if a == nil || a.id != m.Request || a.number != m.Answer ||
		int64(m.Next) > int64(a.first+len(a.parts)) {
		return nil
	}
	switch n := int(m.Next) - a.first; {
	case n > 0:
		a.parts = append([][]byte(nil), a.parts[n:]...)
		a.first += n
		c.goOn(p, a)
	case n == 0:
		c.again(p, a)
	}
	return nil
}

// Limits of a comparison. If a replica has more keys or more differences, everything is sent.
const (
	maxCompared = 4_000_000
	firstCells  = 64
	maxCells    = 1 << 16
	cellsAtOnce = 2048 // fit into one message
)

// askCells requests the cells that a comparison lacks.
func (c *Core) askCells(p *peer, a *answer) {
	a.deadline = c.now.Add(c.cfg.Patience)
	x := a.compare
	if x.asked == 0 {
		x.asked = firstCells
	}
	from := len(x.theirs)
	c.send(p, wire.ReplicatorCompare,
		encode(&pb.Compare{Request: a.id, Answer: a.number, From: uint32(from),
			Count: uint32(x.asked - from)}))
}

// onCells continues a comparison. If the cells suffice, the differences are sent. If they are many
// in proportion to the keys, everything is sent.
func (c *Core) onCells(p *peer, payload []byte) error {
	var m pb.Cells
	if err := decode(payload, &m); err != nil {
		return err
	}
	a := c.outgoing[p.ID]
	if a == nil || a.id != m.Request || a.number != m.Answer || a.compare == nil ||
		int(m.From) != len(a.compare.theirs) {
		return nil
	}
	x := a.compare
	cells, err := cellsIn(&m, x.keys)
	if err != nil {
		return err
	}
	if len(cells) != x.asked-int(m.From) {
		return malformed("%d cells instead of %d", len(cells), x.asked-int(m.From))
	}
	x.theirs = append(x.theirs, cells...)
	if x.mine == nil {
		x.mine = a.pin.sketch()
	}
	theirs, mine, ok := sketch.Difference(x.theirs, x.mine.Cells(x.asked))
	switch next := x.asked + min(x.asked/2, cellsAtOnce); {
	case ok:
		a.compare = nil
		a.source.only = c.differing(a.pin, mine)
		a.source.head.partial, a.source.head.differing = true, theirs
		a.source.head.records = uint64(len(a.source.only))
	case next > maxCells || next > firstCells+max(x.keys, x.mine.Len())/2:
		a.compare = nil
	default:
		x.asked = next
	}
	c.goOn(p, a)
	return nil
}

// sketch returns a sketch with one symbol for each key.
func (s State) sketch() *sketch.Sketch {
	return sketch.New(func(yield func(uint64) bool) {
		for key, h := range s.Keys.All() {
			if !yield(h.symbol(key)) {
				return
			}
		}
	})
}

// differing returns the keys that the symbols stand for, and all keys with marks, which
// fingerprints do not cover.
func (c *Core) differing(s State, symbols []uint64) (keys []string) {
	wanted := make(map[uint64]struct{}, len(symbols))
	for _, symbol := range symbols {
		wanted[symbol] = struct{}{}
	}
	for key, h := range s.Keys.All() {
		if _, ok := wanted[h.symbol(key)]; ok || h.HasMarks() {
			keys = append(keys, string([]byte(key)))
		}
	}
	return keys
}

func cellsIn(m *pb.Cells, keys int) ([]sketch.Cell, error) {
	n := len(m.Sums)
	if n > cellsAtOnce || len(m.Checks) != n || len(m.Counts) != n {
		return nil, malformed("cells: %d sums, %d checks, %d counts", n, len(m.Checks),
			len(m.Counts))
	}
	cells := make([]sketch.Cell, n)
	for i := range cells {
		cells[i] = sketch.Cell{Count: m.Counts[i] + sketch.Expected(keys, int(m.From)+i),
			Sum: m.Sums[i], Check: m.Checks[i]}
	}
	return cells, nil
}

func cellsOut(id, answer uint64, from int, cells []sketch.Cell, keys int) *pb.Cells {
	m := &pb.Cells{Request: id, Answer: answer, From: uint32(from)}
	for i, x := range cells {
		m.Sums, m.Checks = append(m.Sums, x.Sum), append(m.Checks, x.Check)
		m.Counts = append(m.Counts, x.Count-sketch.Expected(keys, from+i))
	}
	return m
}
