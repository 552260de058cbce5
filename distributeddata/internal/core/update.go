package core

import (
	"time"

	"github.com/concord-go/concord/internal/wire"
)

// update makes the changes of Modify part of the open event [R5]. After an error nothing has
// changed. If a caller waits for the outcome, the update's event ends here; unless ev.More, so do
// the open events.
func (c *Core) update(ev Update) {
	if ev.Level.Kind != Local && c.cfg.MinMembers < 1 {
		c.answer(ev, ErrMinMembers)
		return
	}
	if c.members.sealed {
		c.answer(ev, ErrLeft)
		return
	}
	if c.disk.crowded() {
		c.answer(ev, ErrDiskBusy)
		return
	}
	size, err := c.history.Update(c.now, c.cfg.Fits, ev.Modify)
	if err != nil {
		c.answer(ev, err)
		return
	}
	c.outbox.Gather(size)
	if size > 0 {
		c.disk.gather(c.now, size)
	}
	c.answer(ev, nil)
	if c.outbox.Gathered() > maxUnpushed {
		c.push()
	}
}

// unanswered is an update whose caller is answered when its event has been committed.
type unanswered struct {
	id       uint64
	n        uint64 // the number of its event; 0 if it changed nothing
	level    Level
	deadline time.Time
	err      error // why the update was rejected
}

// commitGroup are the updates whose callers wait for one commit.
type commitGroup struct {
	callers []unanswered
	since   time.Time // when the first of these called
}

// maxUnanswered bounds the answers that wait for one commit.
const maxUnanswered = 256

// openPause is the longest time for which an answer waits for other updates.
const openPause = time.Millisecond

// maxOpen bounds the open events that Direct makes.
const maxOpen = 4096

// add adds the caller of an update, whose answer waits for the open events, and for those before
// them. It reports whether they must be committed now.
func (g *commitGroup) add(now time.Time, u unanswered, more bool) (due bool) {
	if len(g.callers) == 0 {
		g.since = now
	}
	g.callers = append(g.callers, u)
	wait := now.Sub(g.since)
	return !more || wait < 0 || wait >= openPause || len(g.callers) >= maxUnanswered
}

// Gathers reports whether events are open. If so, the last step changed nothing that readers see.
func (c *Core) Gathers() bool { return c.history.Gathers() }

// Hidden reports whether a step has made some of the open events.
func (c *Core) Hidden() bool { return c.history.Hidden() }

// Unanswered returns the number of callers that wait for the open events to be committed.
func (c *Core) Unanswered() int { return len(c.group.callers) }

// answer answers an update that is done or was rejected, once the open events are committed.
// Without a waiter only a rejection is reported.
func (c *Core) answer(ev Update, err error) {
	u := unanswered{id: ev.ID, level: ev.Level, deadline: ev.Deadline, err: err}
	switch {
	case ev.ID == 0:
		if err != nil {
			c.emit(Done{Err: err})
		}
		return
	case err == nil:
		u.n = c.history.Take()
	}
	if c.group.add(c.now, u, ev.More) {
		c.end()
	}
}

// end commits the open events, and answers the updates with a waiter.
func (c *Core) end() {
	c.note(c.history.Commit(), c.Seen(), &c.bases)
	if len(c.group.callers) == 0 {
		return
	}
	calls, room := c.calls(), c.group.callers[:0]
	for len(c.group.callers) > 0 {
		u := c.group.callers[0]
		c.group.callers[0], c.group.callers = unanswered{}, c.group.callers[1:]
		calls.startWrite(u)
	}
	c.group.callers = room
}

// push ends the open events, and sends the own events that have not been pushed.
func (c *Core) push() {
	c.end()
	c.outbox.push(c.herald(), c.peers)
}

// maxUnpushed bounds the estimated bytes gathered for one push.
const maxUnpushed = wire.MaxPayload / 4
