package transfer

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/internal/causal"
)

// In is the receiving side of a replica. C is what the owner keeps with the answer in flight.
type In[C any] struct {
	timing   Timing
	busy     bool
	current  inbound[C]
	lag      lag
	after    time.Time // no request before this time, after a bad answer
	mistrust bool      // the last comparison went wrong
}

type inbound[C any] struct {
	id       uint64
	answer   uint64 // the accepted answer: the first one that arrived; 0 before
	member   string
	deadline time.Time // for the next progress
	nudge    time.Time // when to repeat how far it has got
	content  C
	sketch   *sketch.Sketch
	next     int            // index of the next part
	ahead    map[int][]byte // parts that arrived before a missing one
	last     int            // index of the last part, -1 while unknown
	size     int64
}

// lag records that other members have seen more, which may still be in flight to this one.
type lag struct {
	noted  bool
	vector causal.Vector
	member string
	since  time.Time
}

// NewIn returns the receiving side of a replica that has asked for nothing.
func NewIn[C any](t Timing) In[C] { return In[C]{timing: t} }

// Busy reports whether an answer is in flight.
func (in *In[C]) Busy() bool { return in.busy }

// From returns the member whose answer is in flight.
func (in *In[C]) From() (member string) { return in.current.member }

// Content returns what the owner keeps with the answer in flight, or nil.
func (in *In[C]) Content() *C {
	if !in.busy {
		return nil
	}
	return &in.current.content
}

// Begin begins to wait for the answer to a request that is sent to a member now. It reports false,
// and does nothing, if another answer is in flight, or shortly after a bad one.
func (in *In[C]) Begin(now time.Time, id uint64, member string, content C) bool {
	if in.busy || now.Before(in.after) {
		return false
	}
	in.busy, in.current = true, inbound[C]{id: id, member: member, content: content, last: -1}
	in.Extend(now)
	in.current.nudge = now.Add(in.timing.Grace) // soon, the first time
	return true
}

// Take ends the wait for the answer in flight, and returns what was kept with it.
func (in *In[C]) Take() C {
	c := in.current.content
	in.busy, in.current = false, inbound[C]{}
	return c
}

// Lost gives up the answer of a member that is gone.
func (in *In[C]) Lost(member string) {
	if in.busy && in.current.member == member {
		in.Take()
	}
}

// Late gives up an answer that has made no progress in time. If there is still something to ask
// for, the next heartbeat shows the lag again.
func (in *In[C]) Late(now time.Time) {
	if in.busy && !now.Before(in.current.deadline) {
		in.Take()
	}
}

// Bad gives up the answer in flight. There is no request for a while, since the next answer may not
// be better.
func (in *In[C]) Bad(now time.Time) {
	in.Take()
	in.after = now.Add(in.timing.Pause)
}

// Mistrust says whether the last comparison went wrong. Then nothing is compared until a whole
// state has arrived.
func (in *In[C]) Mistrust(is bool) { in.mistrust = is }

// Mistrusts reports whether nothing may be compared.
func (in *In[C]) Mistrusts() bool { return in.mistrust }

// Extend gives the answer in flight time for its next progress.
func (in *In[C]) Extend(now time.Time) {
	in.current.deadline = now.Add(in.timing.Patience)
	in.current.nudge = now.Add(in.timing.Patience / 4)
}

// Nudge reports whether it is time to repeat how far the answer has got, since parts of it, or the
// previous report, may have been lost. If again is true, nothing has arrived yet, and the request
// must be sent again; otherwise More.
func (in *In[C]) Nudge(now time.Time) (due, again bool) {
	r := &in.current
	if !in.busy || now.Before(r.nudge) {
		return false, false
	}
	r.nudge = now.Add(in.timing.Patience / 4)
	return true, r.next == 0 && r.sketch == nil
}

// ID returns the id of the request whose answer is in flight.
func (in *In[C]) ID() uint64 { return in.current.id }

// More says how far the answer in flight has got.
func (in *In[C]) More() More {
	r := &in.current
	return More{Request: r.id, Answer: r.answer, Next: r.next}
}

// Of reports whether a message of a member belongs to the answer in flight. The first message of an
// answer decides which one that is.
func (in *In[C]) Of(member string, request, answer uint64) bool {
	r := &in.current
	if !in.busy || r.member != member || r.id != request {
		return false
	}
	if r.answer == 0 {
		r.answer = answer
	}
	return r.answer == answer
}

// Cells answers a Compare that belongs to the answer in flight, with cells of the sketch of what
// this replica had when it asked. some is false if parts have arrived already.
func (in *In[C]) Cells(now time.Time, m Compare, of func(*C) *sketch.Sketch) (out Cells, some bool,
	err error) {
	r := &in.current
	if r.next > 0 {
		return Cells{}, false, nil
	}
	if m.Count <= 0 || m.Count > CellsAtOnce || m.From < 0 || m.From > maxCells {
		return Cells{}, false, fmt.Errorf("transfer: asked for %d cells from %d on", m.Count, m.From)
	}
	if r.sketch == nil {
		r.sketch = of(&r.content)
	}
	in.Extend(now)
	out = Cells{Request: r.id, Answer: r.answer, From: m.From}
	return out.encode(r.sketch.Cells(m.From + m.Count)[m.From:], r.sketch.Len()), true, nil
}

// Part takes a part that belongs to the answer in flight, and feeds, in order, all parts without a
// gap. If all have been fed, done is true: the owner continues with Take. If some have, more is
// true: the owner sends More. An error ends the answer.
func (in *In[C]) Part(now time.Time, m Part, feed func(*C, []byte) error) (done, more bool,
	err error) {
	r := &in.current
	before := r.next
	if err := r.collect(m, feed); err != nil {
		in.Bad(now)
		return false, false, err
	}
	done, more = r.last >= 0 && r.next > r.last, r.next > before
	if more {
		in.Extend(now)
	}
	return done, more && !done, nil
}

func (r *inbound[C]) collect(m Part, feed func(*C, []byte) error) error {
	n := m.Index
	if n < r.next || n >= r.next+2*Credit || r.ahead[n] != nil {
		return nil // received before, or cannot have been sent yet
	}
	if len(m.Data) == 0 || m.Last && r.last >= 0 && r.last != n || r.last >= 0 && n > r.last {
		return fmt.Errorf("transfer: part %d of an answer", n)
	}
	if m.Last {
		r.last = n
	}
	if r.size += int64(len(m.Data)); r.size > MaxBytes {
		return fmt.Errorf("transfer: answer over %d bytes", MaxBytes)
	}
	if r.ahead == nil {
		r.ahead = map[int][]byte{}
	}
	r.ahead[n] = m.Data
	for r.ahead[r.next] != nil {
		if err := feed(&r.content, r.ahead[r.next]); err != nil {
			return err
		}
		delete(r.ahead, r.next)
		r.next++
	}
	return nil
}

// Behind records that a member has seen v. What this replica lacks of it may still be in flight, so
// it is asked for only after the grace period.
func (in *In[C]) Behind(now time.Time, v causal.Vector, member string) {
	if !in.lag.noted {
		in.lag = lag{noted: true, vector: v, member: member, since: now}
	}
}

// CatchUp returns the member to ask for what has not arrived by itself: the one that reported it.
// If that one is gone or does not answer, the next heartbeat shows the lag again.
func (in *In[C]) CatchUp(now time.Time, seen causal.Vector) (member string, ask bool) {
	switch l := in.lag; {
	case !l.noted:
	case l.vector.Leq(seen):
		in.lag = lag{}
	case !in.busy && !now.Before(l.since.Add(in.timing.Grace)):
		in.lag = lag{}
		return l.member, true
	}
	return "", false
}

// Wake calls earlier with the times at which something is due.
func (in *In[C]) Wake(earlier func(time.Time)) {
	if in.busy {
		earlier(in.current.deadline)
		earlier(in.current.nudge)
	} else if in.lag.noted {
		earlier(in.lag.since.Add(in.timing.Grace))
	}
}
