package transfer

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/sketch"
)

// Stream is what an answer says. Its parts are made as they are sent, so that a large answer
// neither blocks the replica nor fills the memory.
type Stream interface {
	// Take returns the next size bytes of the stream, or fewer at its end.
	Take(size int) (part []byte, last bool)
	// Sketch returns the sketch of what the stream says, for a comparison.
	Sketch() *sketch.Sketch
	// Narrow says which symbols only the receiver has, and which only this replica: the stream
	// leaves out what both have.
	Narrow(theirs, mine []uint64)
}

// Out is the sending side of a replica.
type Out[S Stream] struct {
	timing    Timing
	partBytes int
	askers    map[string]*asker[S]
}

// asker is a member that has asked.
type asker[S Stream] struct {
	request uint64       // the last request it made
	asked   time.Time    // when that request arrived
	answer  *outbound[S] // nil: none is in flight
}

// outbound is an answer in flight. Its parts are kept until they have arrived.
type outbound[S Stream] struct {
	id       uint64 // of the request
	number   uint64 // of the answer; unique at this replica
	stream   S
	parts    [][]byte // sent, and not known to have arrived
	first    int      // index of the first of these
	last     int      // index of the last part, -1 while unknown
	deadline time.Time
	compare  *comparison // nil once parts are sent
}

// comparison finds what differs between two states.
type comparison struct {
	theirs []sketch.Cell
	keys   int // number of keys of the other side
	asked  int // number of cells asked for
	mine   *sketch.Sketch
}

// Sends are the messages that continue an answer: parts, or a request for cells.
type Sends[S Stream] struct {
	Stream  S // that the parts are of
	Parts   []Part
	Compare *Compare
}

// NewOut returns the sending side of a replica that nobody has asked.
func NewOut[S Stream](t Timing, partBytes int) Out[S] {
	return Out[S]{timing: t, partBytes: partBytes, askers: map[string]*asker[S]{}}
}

// Asked handles a request. If it is a new one, fresh is true: the owner makes the stream and calls
// Begin. A repeated request is answered with what has not arrived. A late one, of an answer that
// is over, is ignored: the parts of two answers must not mix under one id.
func (o *Out[S]) Asked(now time.Time, member string, id uint64) (again Sends[S], fresh bool) {
	a := o.askers[member]
	switch {
	case a == nil:
		a = &asker[S]{}
		o.askers[member] = a
	case a.answer != nil && a.answer.id == id:
		return o.again(now, a.answer), false
	}
	if id <= a.request && now.Before(a.asked.Add(o.timing.Patience)) {
		return Sends[S]{}, false
	}
	a.request, a.asked = id, now
	return Sends[S]{}, true
}

// Begin begins the answer to the last request of a member. If keys is not 0, the states are
// compared first; it is the number of keys of the other side.
func (o *Out[S]) Begin(now time.Time, member string, number uint64, stream S, keys int) Sends[S] {
	a := o.askers[member]
	x := &outbound[S]{id: a.request, number: number, stream: stream, last: -1}
	if keys > 0 {
		x.compare = &comparison{keys: keys, asked: firstCells}
	}
	a.answer = x
	return o.goOn(now, x)
}

// goOn sends the next parts if there is room for them. The receiver acknowledges parts one by one
// at first, so the number of parts in flight grows up to the credit.
func (o *Out[S]) goOn(now time.Time, a *outbound[S]) Sends[S] {
	a.deadline = now.Add(o.timing.Patience)
	if a.compare != nil {
		return a.askCells()
	}
	before := len(a.parts)
	for n := 0; n < stride && a.last < 0 && len(a.parts) < Credit; n++ {
		part, last := a.stream.Take(o.partBytes)
		a.parts = append(a.parts, part)
		if last {
			a.last = a.first + len(a.parts) - 1
		}
	}
	return a.sends(before)
}

// again sends everything that has not arrived.
func (o *Out[S]) again(now time.Time, a *outbound[S]) Sends[S] {
	a.deadline = now.Add(o.timing.Patience)
	if a.compare != nil {
		return a.askCells()
	}
	return a.sends(0)
}

// sends returns the parts in flight from the i-th on.
func (a *outbound[S]) sends(i int) Sends[S] {
	out := Sends[S]{Stream: a.stream}
	for ; i < len(a.parts); i++ {
		n := a.first + i
		out.Parts = append(out.Parts, Part{Request: a.id, Answer: a.number, Index: n,
			Last: n == a.last, Data: a.parts[i]})
	}
	return out
}

// More records which parts have arrived and sends further ones. If the receiver repeats itself, the
// parts in flight are lost.
func (o *Out[S]) More(now time.Time, member string, m More) Sends[S] {
	a := o.of(member, m.Request, m.Answer)
	if a == nil {
		return Sends[S]{}
	}
	switch n := m.Next - a.first; {
	case n > len(a.parts) || n < 0:
		return Sends[S]{}
	case n == 0:
		return o.again(now, a)
	default:
		a.parts = slices.Clone(a.parts[n:])
		a.first += n
		return o.goOn(now, a)
	}
}

// askCells requests the cells that a comparison lacks.
func (a *outbound[S]) askCells() Sends[S] {
	from := len(a.compare.theirs)
	return Sends[S]{Stream: a.stream, Compare: &Compare{Request: a.id, Answer: a.number, From: from,
		Count: a.compare.asked - from}}
}

// Cells continues a comparison. If the cells suffice, the stream is narrowed to the differences. If
// they are many in proportion to the keys, everything is sent.
func (o *Out[S]) Cells(now time.Time, member string, m Cells) (Sends[S], error) {
	a := o.of(member, m.Request, m.Answer)
	if a == nil || a.compare == nil || m.From != len(a.compare.theirs) {
		return Sends[S]{}, nil
	}
	x := a.compare
	n := len(m.Sums)
	if n != x.asked-m.From || len(m.Checks) != n || len(m.Counts) != n {
		return Sends[S]{}, fmt.Errorf("transfer: cells: %d sums, %d checks, %d counts, asked for %d",
			n, len(m.Checks), len(m.Counts), x.asked-m.From)
	}
	x.theirs = append(x.theirs, m.decode(x.keys)...)
	if x.mine == nil {
		x.mine = a.stream.Sketch()
	}
	theirs, mine, ok := sketch.Difference(x.theirs, x.mine.Cells(x.asked))
	switch next := x.asked + min(x.asked/2, CellsAtOnce); {
	case ok:
		a.compare = nil
		a.stream.Narrow(theirs, mine)
	case next > maxCells || next > firstCells+max(x.keys, x.mine.Len())/2:
		a.compare = nil
	default:
		x.asked = next
	}
	return o.goOn(now, a), nil
}

// of returns the answer in flight that a message of its receiver belongs to, or nil.
func (o *Out[S]) of(member string, request, answer uint64) *outbound[S] {
	a := o.askers[member]
	if a == nil || a.answer == nil || a.answer.id != request || a.answer.number != answer {
		return nil
	}
	return a.answer
}

// Lost forgets a member that is gone, or whose replica is another one now.
func (o *Out[S]) Lost(member string) { delete(o.askers, member) }

// Keep forgets the members for which is returns false.
func (o *Out[S]) Keep(is func(member string) bool) {
	for m := range o.askers {
		if !is(m) {
			delete(o.askers, m)
		}
	}
}

// Clear gives up all answers in flight.
func (o *Out[S]) Clear() {
	for _, a := range o.askers {
		a.answer = nil
	}
}

// Late gives up the answers that have made no progress in time.
func (o *Out[S]) Late(now time.Time) {
	for _, a := range o.askers {
		if a.answer != nil && !now.Before(a.answer.deadline) {
			a.answer = nil
		}
	}
}

// Streams yields the streams of the answers in flight.
func (o *Out[S]) Streams() iter.Seq[S] {
	return func(yield func(S) bool) {
		for _, a := range o.askers {
			if a.answer != nil && !yield(a.answer.stream) {
				return
			}
		}
	}
}

// Wake calls earlier with the times at which something is due.
func (o *Out[S]) Wake(earlier func(time.Time)) {
	for _, a := range o.askers {
		if a.answer != nil {
			earlier(a.answer.deadline)
		}
	}
}
