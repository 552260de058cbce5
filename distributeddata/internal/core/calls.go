package core

import (
	queue "container/heap"
	"slices"
	"time"
)

// caller is one call that waits for an operation.
type caller struct {
	id       uint64
	n        uint64 // for a write: the number of its event
	deadline time.Time
	op       *operation
	ended    bool
}

// deadlines is a heap of callers by deadline. Completed callers stay until they reach the top, or
// until they are half of all.
type deadlines []*caller

func (d deadlines) Len() int      { return len(d) }
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)   { *d = append(*d, x.(*caller)) }

func (d deadlines) Less(i, j int) bool {
	if !d[i].deadline.Equal(d[j].deadline) {
		return d[i].deadline.Before(d[j].deadline)
	}
	return d[i].id < d[j].id
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return w
}

// next returns the pending caller with the earliest deadline, or nil.
func (d *deadlines) next() *caller {
	for len(*d) > 0 && (*d)[0].ended {
		queue.Pop(d)
	}
	if len(*d) == 0 {
		return nil
	}
	return (*d)[0]
}

// call adds a caller to an operation.
func (c *Core) call(o *operation, id, n uint64, deadline time.Time) {
	w := &caller{id: id, n: n, deadline: deadline, op: o}
	if o.live == 0 {
		o.id = id
	}
	o.callers = append(o.callers, w)
	o.live++
	c.calls++
	queue.Push(&c.deadlines, w)
	if len(c.deadlines) > 64 && len(c.deadlines) > 2*c.calls {
		c.deadlines = slices.DeleteFunc(c.deadlines, func(w *caller) bool { return w.ended })
		queue.Init(&c.deadlines)
	}
	if c.due.IsZero() || deadline.Before(c.due) {
		c.due = deadline
	}
}

// endCall completes a call.
func (c *Core) endCall(w *caller, d Done) {
	d.ID = w.id
	if d.Short == nil {
		d.wait, d.until = waits(w.op.task), w.deadline
	}
	c.emit(d)
	w.ended = true
	c.calls--
	o := w.op
	o.live--
	for len(o.callers) > 0 && o.callers[0].ended {
		o.callers[0] = nil
		o.callers = o.callers[1:]
	}
	if len(o.callers) > 2*o.live+16 {
		o.callers = slices.DeleteFunc(slices.Clone(o.callers), func(w *caller) bool {
			return w.ended
		})
	}
}

// waits returns what the success of a call has to wait for.
func waits(t task) wait {
	switch t.(type) {
	case *writes, *cover, *confirm:
		return forDisk
	case *leave:
		return forFlush
	}
	return forNothing
}

// expire completes the calls whose deadlines have passed.
func (c *Core) expire() {
	for w := c.deadlines.next(); w != nil && !c.now.Before(w.deadline); w = c.deadlines.next() {
		c.endCall(w, Done{Short: c.short(w, w.op.task.advance(c, w.op))})
	}
}
