package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorder collects the operations of clients. The zero value is ready. It is safe for concurrent
// use.
type Recorder[I, O any] struct {
	mu struct {
		sync.Mutex
		start time.Time
		step  int64
		ops   []*Pending[I, O]
	}
}

// Outcome is the result of an operation as seen by its client.
type Outcome[O any] struct {
	Value O
	Known bool // false: Value is undefined; the operation may have taken effect or may still do so
}

// Operation is one entry of a history.
type Operation[I, O any] struct {
	Client   int
	Input    I
	Output   Outcome[O]
	Call     int64 // position of its begin in the history
	Return   int64 // position of its end; Never if it may take effect at any later time
	Called   time.Duration
	Returned time.Duration // since the first operation
}

// Never is later than every recorded position.
const Never = math.MaxInt64

// Pending is an operation that has begun.
type Pending[I, O any] struct {
	r       *Recorder[I, O]
	op      Operation[I, O]
	ended   bool
	dropped bool
}

// tickLocked returns the next position and the time.
func (r *Recorder[I, O]) tickLocked() (int64, time.Duration) {
	if r.mu.start.IsZero() {
		r.mu.start = time.Now()
	}
	r.mu.step++
	return r.mu.step, time.Since(r.mu.start)
}

// Begin records that a client is about to send a request. Client numbers start at 0.
func (r *Recorder[I, O]) Begin(client int, in I) *Pending[I, O] {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Pending[I, O]{r: r, op: Operation[I, O]{Client: client, Input: in, Return: Never}}
	p.op.Call, p.op.Called = r.tickLocked()
	r.mu.ops = append(r.mu.ops, p)
	return p
}

// End records the answer. Only the first result of an operation counts: an answer after Unknown,
// Discard or Crash is ignored.
func (p *Pending[I, O]) End(out O) { p.end(Outcome[O]{out, true}, false) }

// Unknown records that no conclusive answer arrived. The operation may take effect at any time
// until the end of the history, or never.
func (p *Pending[I, O]) Unknown() { p.end(Outcome[O]{}, false) }

// Settled records that an operation with an unknown outcome can no longer take effect. Histories
// with fewer open operations are checked faster.
func (p *Pending[I, O]) Settled() {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.op.Return == Never && !p.op.Output.Known {
		p.ended = true
		p.op.Return, p.op.Returned = p.r.tickLocked()
	}
}

// Discard records that the operation certainly had no effect and returned nothing.
func (p *Pending[I, O]) Discard() { p.end(Outcome[O]{}, true) }

func (p *Pending[I, O]) end(out Outcome[O], dropped bool) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.ended {
		return
	}
	p.ended, p.dropped, p.op.Output = true, dropped, out
	if at, now := p.r.tickLocked(); out.Known {
		p.op.Return, p.op.Returned = at, now
	}
}

// Crash records that a client has died: the outcomes of its pending operations are unknown.
func (r *Recorder[I, O]) Crash(client int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.mu.ops {
		if p.op.Client == client {
			p.ended = true // an end after the death is a mistake in the test
		}
	}
}

// Operations returns the history so far, ordered by begin. Operations that have not ended are
// unknown. The caller owns the slice.
func (r *Recorder[I, O]) Operations() []Operation[I, O] {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Operation[I, O], 0, len(r.mu.ops))
	for _, p := range r.mu.ops {
		if !p.dropped {
			out = append(out, p.op)
		}
	}
	return out
}

// Story formats a history line by line, with begins and ends in order.
func Story[I, O any](ops []Operation[I, O]) string {
	type line struct {
		at   int64
		text string
	}
	var lines []line
	for _, o := range ops {
		lines = append(lines, line{o.Call,
			fmt.Sprintf("%v client %d: %v …", o.Called, o.Client, o.Input)})
		if o.Output.Known {
			lines = append(lines, line{o.Return,
				fmt.Sprintf("%v client %d: %v → %v", o.Returned, o.Client, o.Input,
					o.Output.Value)})
		} else {
			lines[len(lines)-1].text += " never answered"
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}
