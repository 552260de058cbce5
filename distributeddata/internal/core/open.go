package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// Own events are open until end commits them. An open event may still grow, and nothing of it is
// visible: neither to readers, nor to other members, nor to the disk, and no caller has its answer.
//
// Updates without a waiter share the event with the next number. An update with a waiter takes that
// number: the value that it returns says that this replica has seen the event, so the number must
// not name another one. If another update follows at once, the event stays open with those after
// it [R11]. The events are committed together, as if the values between them had never been:
// the log has their net effect, and each atom with the event that added it. An event of which
// nothing is left is empty. The keys, the vector and the fingerprint are thus changed once, however
// many updates share them.

// unanswered is an update whose caller is answered when its event has been committed.
type unanswered struct {
	id       uint64
	n        uint64 // the number of its event; 0 if it changed nothing
	level    Level
	deadline time.Time
	err      error // why the update was rejected
}

// maxUnanswered bounds the answers that wait for one commit.
const maxUnanswered = 256

// openPause is the longest time for which an answer waits for other updates.
const openPause = time.Millisecond

// maxOpen bounds the open events that Direct makes. keptOpen is the largest number of open keys
// whose map is used again: clearing a map takes time for its largest size.
const maxOpen, keptOpen = 4096, 64

// openDot returns the dot of the event that the next update is, or is a part of.
func (c *Core) openDot() causal.Dot {
	return causal.Dot{Replica: c.me, N: c.seen.Get(c.me) + c.taken + 1}
}

// openSeen returns what this replica will have seen before that event.
func (c *Core) openSeen() causal.Vector {
	if c.taken == 0 {
		return c.seen
	}
	return c.seenUpTo(c.seen.Get(c.me) + c.taken)
}

// seenUpTo returns what this replica will have seen after the own event n, which is open.
func (c *Core) seenUpTo(n uint64) causal.Vector {
	if c.upTo.n != n {
		c.upTo.n, c.upTo.seen = n, c.seen.With(causal.Dot{Replica: c.me, N: n})
	}
	return c.upTo.seen
}

// openEvents returns the number of open events.
func (c *Core) openEvents() uint64 {
	switch {
	case len(c.open) == 0:
		return 0
	case c.taken > 0 && !c.using:
		return c.taken
	}
	return c.taken + 1
}

// Gathers reports whether events are open. If so, the last step changed nothing that readers see.
func (c *Core) Gathers() bool { return len(c.open) > 0 }

// Hidden reports whether a step has made some of the open events.
func (c *Core) Hidden() bool { return c.hidden }

// Unanswered returns the number of callers that wait for the open events to be committed.
func (c *Core) Unanswered() int { return len(c.unanswered) }

// merge makes an update's work part of the open event. It computes everything that may fail before
// it changes anything.
func (c *Core) merge(work []*working) {
	size, using := 0, c.using
	for _, w := range work {
		using = using || w.cleared || !w.change.Empty()
		size += keyChange{key: w.key, Change: w.change}.size()
		for _, a := range w.change.Adds {
			size += len(a.Payload)
		}
	}
	if c.open == nil {
		c.open = make(map[string]*working, len(work))
	}
	for _, w := range work {
		if was := c.open[w.key]; was != nil {
			c.spare = was
		}
		c.open[w.key] = w
	}
	c.using = using
	c.outbox.Gather(size)
	if len(work) > 0 {
		c.gather(size)
	}
}

// answer answers an update that is done or was rejected. The answer waits for the open events, and
// for those before it. Without a waiter only a rejection is reported.
func (c *Core) answer(ev Update, err error) {
	if ev.ID == 0 {
		if err != nil {
			c.emit(Done{Err: err})
		}
		return
	}
	a := unanswered{id: ev.ID, level: ev.Level, deadline: ev.Deadline, err: err}
	if err == nil && c.using {
		c.taken, c.using, a.n = c.taken+1, false, c.openAs.N
	}
	if len(c.unanswered) == 0 {
		c.openedAt = c.now
	}
	c.unanswered = append(c.unanswered, a)
	if wait := c.now.Sub(c.openedAt); !ev.More || wait < 0 || wait >= openPause ||
		len(c.unanswered) >= maxUnanswered {
		c.end()
	}
}

// end commits the open events: they become the newest own events, and their working copy becomes
// the state. An event without a net effect uses no number, unless an answered update has taken it.
// Then it answers the updates with a waiter.
//
// Updates without a waiter share an event, up to the next input of another kind, so the states
// between them are never visible. Atoms of one event have one dot, and the meaning of a dot must
// never change. The updates cost other members only their net effect: a counter raised a hundred
// times is one atom.
func (c *Core) end() {
	if len(c.open) > 0 {
		c.commitOpen()
	}
	room := c.unanswered[:0]
	for len(c.unanswered) > 0 {
		a := c.unanswered[0]
		c.unanswered[0], c.unanswered = unanswered{}, c.unanswered[1:]
		c.startWrite(a)
	}
	c.unanswered = room
}

func (c *Core) commitOpen() {
	before, from := c.seen, c.seen.Get(c.me)
	n, after := c.openEvents(), causal.Vector{}
	if c.taken > 0 {
		after = c.seenUpTo(from + n)
	}
	work := slices.SortedFunc(maps.Values(c.open), func(a, b *working) int {
		return strings.Compare(a.key, b.key)
	})
	ch := c.commit(work, after)
	if ch.own > 0 {
		c.prints.add(from+1, c.seen.Get(c.me), c.sum, before, c.clock)
	}
	if len(c.open) <= keptOpen {
		clear(c.open)
	} else {
		c.open = nil
	}
	c.taken, c.using, c.hidden, c.promised, c.spare = 0, false, false, false, nil
	c.note(ch)
}

// keyChange returns the effect on the key of the events after from up to the event last.
func (w *working) keyChange(from uint64, last causal.Dot) keyChange {
	k := keyChange{key: w.key, Change: w.change}
	if !w.was.Same(w.base) { // several updates have touched the key; all have been checked
		k.Change, _ = causal.BetweenSince(w.base, w.next, from, last, causal.Change{})
	}
	if !w.cleared {
		return k
	}
	k.Clear = true
	for path, m := range w.base.Marks() {
		if m.By.Replica == last.Replica && m.By.N > from {
			k.Marks = append(k.Marks, causal.MarkAt{Path: path, Mark: m})
		}
	}
	return k
}
