// Package waiting holds the calls of a replica that wait for other members, and their deadlines.
// It knows no members and no messages: its owner decides what a call waits for, and asks for it.
//
// Calls of one level that wait for the same share a Group [R35]: writes wait in the order of their
// events, and reads that began before the others were asked share one question. The cost of a
// message thus depends on the number of groups, which is small, and not on that of the calls.
//
// The owner puts a call into a group with Join or Open, and Add. When something has arrived that
// calls may wait for, it says so with Stir. At the end of each step it asks Due; if that is true,
// it takes with Pop, from each group, the calls that have what they need, with Expired those that
// are late, and asks for the groups that Rest yields.
package waiting

import (
	queue "container/heap"
	"iter"
	"slices"
	"time"
)

// Call is a call that waits.
type Call struct {
	ID       uint64
	N        uint64 // the number of the event that it waits for, if it waits for one
	Deadline time.Time
}

// Group is what several calls of one level wait for together.
type Group[L comparable, T any] struct {
	// Task is what the calls wait for. The owner may replace it.
	Task T

	id    uint64
	level L
	asked bool
	again time.Time // when to ask again; zero: never
	calls []*call[L, T]
	live  int
	kept  bool
}

// call is a call in its group, in order of arrival, and in the heap of deadlines. One that has
// ended stays in either until it comes to the front, or until most have ended.
type call[L comparable, T any] struct {
	Call
	of    *Group[L, T]
	ended bool
}

// Rounds bounds the number of groups of one level that have been asked for at a time. Later calls
// wait together until one of these is done.
const Rounds = 8

// Calls are all calls that wait.
type Calls[L comparable, T any] struct {
	pause     time.Duration
	groups    []*Group[L, T]
	deadlines deadlines[L, T]
	live      int
	due       time.Time // when something must be done without being stirred; zero: always
	stirred   bool
}

// New returns a set without calls. What has been asked is asked again after a pause, since messages
// get lost.
func New[L comparable, T any](pause time.Duration) Calls[L, T] {
	return Calls[L, T]{pause: pause}
}

// ID returns the id of the group's first call, which names it in messages.
func (g *Group[L, T]) ID() uint64 { return g.id }

// Level returns the level of the calls.
func (g *Group[L, T]) Level() L { return g.level }

// Asked reports whether the group has been asked for. No call may join it then: the answers may be
// older than the call.
func (g *Group[L, T]) Asked() bool { return g.asked }

// Live returns the number of calls that wait.
func (g *Group[L, T]) Live() int { return g.live }

// Kept reports whether the group goes on without calls.
func (g *Group[L, T]) Kept() bool { return g.kept }

// AskSoon makes Rest yield the group next time.
func (g *Group[L, T]) AskSoon(now time.Time) { g.asked, g.again = true, now }

// Range returns the numbers of the first event and the last one that calls wait for, or 0.
func (g *Group[L, T]) Range() (first, last uint64) {
	if len(g.calls) == 0 {
		return 0, 0
	}
	return g.calls[0].N, g.calls[len(g.calls)-1].N
}

// Len returns the number of groups.
func (c *Calls[L, T]) Len() int { return len(c.groups) }

// Live returns the number of calls that wait.
func (c *Calls[L, T]) Live() int { return c.live }

// All yields the groups.
func (c *Calls[L, T]) All() iter.Seq[*Group[L, T]] { return slices.Values(c.groups) }

// IDs returns the ids of the calls that wait.
func (c *Calls[L, T]) IDs() (ids []uint64) {
	for _, g := range c.groups {
		for _, w := range g.calls {
			if !w.ended {
				ids = append(ids, w.ID)
			}
		}
	}
	return ids
}

// Stir says that something has arrived that calls may wait for.
func (c *Calls[L, T]) Stir() { c.stirred = true }

// Join returns a group of a level that calls can join and whose task fits, or nil.
func (c *Calls[L, T]) Join(level L, fits func(T) bool) *Group[L, T] {
	for _, g := range c.groups {
		if !g.asked && g.level == level && fits(g.Task) {
			return g
		}
	}
	return nil
}

// Open begins a group. It is asked for at once, or as soon as fewer of its level have been.
func (c *Calls[L, T]) Open(now time.Time, level L, task T) *Group[L, T] {
	g := c.OpenSilent(level, task)
	g.again = now.Add(c.pause)
	return g
}

// OpenSilent begins a group that is never asked for.
func (c *Calls[L, T]) OpenSilent(level L, task T) *Group[L, T] {
	g := &Group[L, T]{Task: task, level: level}
	c.groups = append(c.groups, g)
	return g
}

// Keep begins a group without a call, named id, which goes on until Settle ends it.
func (c *Calls[L, T]) Keep(id uint64, level L, task T) *Group[L, T] {
	g := c.OpenSilent(level, task)
	g.id, g.kept = id, true
	return g
}

// Add adds a call to a group.
func (c *Calls[L, T]) Add(g *Group[L, T], w Call) {
	x := &call[L, T]{Call: w, of: g}
	if g.live == 0 {
		g.id = w.ID
	}
	g.calls = append(g.calls, x)
	g.live++
	c.live++
	queue.Push(&c.deadlines, x)
	if len(c.deadlines) > 64 && len(c.deadlines) > 2*c.live {
		c.deadlines = slices.DeleteFunc(c.deadlines, func(w *call[L, T]) bool { return w.ended })
		queue.Init(&c.deadlines)
	}
	c.by(w.Deadline)
}

// by makes something due at a time, or earlier.
func (c *Calls[L, T]) by(at time.Time) {
	if c.due.IsZero() || at.Before(c.due) {
		c.due = at
	}
}

// Settle records whether a group has come to its end, so that it need not be kept.
func (g *Group[L, T]) Settle(over bool) { g.kept = g.kept && !over }

// Pop ends the next call of a group if its event is at most upTo, and returns it.
func (c *Calls[L, T]) Pop(g *Group[L, T], upTo uint64) (w Call, ok bool) {
	if g.live == 0 || g.calls[0].N > upTo {
		return Call{}, false
	}
	x := g.calls[0]
	c.end(x)
	return x.Call, true
}

// Expired ends the next call whose deadline has passed, and returns it with its group.
func (c *Calls[L, T]) Expired(now time.Time) (g *Group[L, T], w Call, ok bool) {
	x := c.deadlines.first()
	if x == nil || now.Before(x.Deadline) {
		return nil, Call{}, false
	}
	c.end(x)
	return x.of, x.Call, true
}

func (c *Calls[L, T]) end(x *call[L, T]) {
	g := x.of
	x.ended = true
	c.live--
	g.live--
	for len(g.calls) > 0 && g.calls[0].ended {
		g.calls[0] = nil
		g.calls = g.calls[1:]
	}
	if len(g.calls) > 2*g.live+16 {
		g.calls = slices.DeleteFunc(slices.Clone(g.calls), func(w *call[L, T]) bool {
			return w.ended
		})
	}
}

// Begun removes a group that a call has joined and that has ended at once. Otherwise it reports
// whether the group is to be asked for now.
func (c *Calls[L, T]) Begun(now time.Time, g *Group[L, T]) (ask bool) {
	if g.live == 0 {
		c.groups = slices.DeleteFunc(c.groups, func(x *Group[L, T]) bool { return x == g })
		return false
	}
	if !g.again.IsZero() {
		if ask = !g.asked && c.room(g); ask {
			c.ask(now, g)
		}
		c.by(g.again)
	}
	return ask
}

// Ask makes a group one that has been asked for now.
func (c *Calls[L, T]) Ask(now time.Time, g *Group[L, T]) {
	c.ask(now, g)
	c.by(g.again)
}

func (c *Calls[L, T]) ask(now time.Time, g *Group[L, T]) {
	g.asked, g.again = true, now.Add(c.pause)
}

// room reports whether a group may be asked for now.
func (c *Calls[L, T]) room(g *Group[L, T]) bool {
	n := 0
	for _, x := range c.groups {
		if x.asked && x.level == g.level && !x.again.IsZero() {
			n++
		}
	}
	return n < Rounds
}

// Due reports whether calls may have what they wait for, or are late, or something is to be asked.
// If so, it is no longer stirred.
func (c *Calls[L, T]) Due(now time.Time) bool {
	if len(c.groups) == 0 || !c.stirred && now.Before(c.due) {
		return false
	}
	c.stirred = false
	return true
}

// Rest removes the groups that have ended, and yields those that are to be asked for now.
func (c *Calls[L, T]) Rest(now time.Time) iter.Seq[*Group[L, T]] {
	return func(yield func(*Group[L, T]) bool) {
		c.groups = slices.DeleteFunc(c.groups, func(g *Group[L, T]) bool {
			return g.live == 0 && !g.kept
		})
		c.due = time.Time{}
		if w := c.deadlines.first(); w != nil {
			c.due = w.Deadline
		}
		for _, g := range c.groups {
			if g.again.IsZero() {
				continue
			}
			if !now.Before(g.again) || !g.asked && c.room(g) {
				c.ask(now, g)
				if !yield(g) {
					return
				}
			}
			if g.again.Before(c.due) {
				c.due = g.again
			}
		}
	}
}

// Wake returns when Due will be true without Stir, the zero time if no group waits.
func (c *Calls[L, T]) Wake(now time.Time) time.Time {
	switch {
	case len(c.groups) == 0:
		return time.Time{}
	case c.stirred:
		return now
	}
	return c.due
}
