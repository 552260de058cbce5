package core

import (
	"container/list"
	"slices"
	"time"
)

// Common is what the machines of one session share: what is known about other sessions, whose slot
// it is to call the store, and which machines rely on watches. The zero value is empty. Common
// belongs to the goroutine of the machines.
type Common struct {
	Batch     int // how many swaps the store makes in one call; 0: one
	known     map[string]*peer
	succeeded bool // another session of the same owner has taken a lease from this one
	slots     slots
	resting   list.List     // machines that rely on a watch; the first reads next
	audit     time.Duration // when it reads
	ready     []*Machine
}

// Ready returns the names of the leases whose machines can continue because of what another machine
// or an observer did, and forgets them. Each is to be stepped with a Tick.
func (c *Common) Ready() []string {
	names := make([]string, len(c.ready))
	for i, m := range c.ready {
		names[i] = m.cfg.Name
	}
	c.ready = nil
	return names
}

// slots bounds the calls of the store that are in flight at the same time. A thousand leases that
// are wanted or released at once would otherwise wait for the store until their calls time out, and
// be tried again, and renewals would wait in the store behind them. Renewals wait for nobody. Of
// the slots for which audits of tenures and others wait, audits get two of three: on a slow store,
// those of many leases may need as many calls as it makes.
//
// The bound follows the store: it rises by one when that many slots have ended well while all were
// taken, and a failed call, or one that has waited for others in the store, halves it. The calls
// that were in flight together halve it once. Slots that were never taken together prove nothing:
// if audits at rest raised the bound, the next burst would wait for its own calls in the store.
type slots struct {
	bound   int           // 0: nothing has called yet
	taken   int           // may exceed a bound that was halved
	settled int           // slots that have ended well since the bound rose; see above
	given   int           // slots ever
	halved  int           // those given before the bound was halved last
	quick   time.Duration // of the quickest call; 0: there was none
	audits  []*Machine    // that wait for a slot
	line    []*Machine    // the others that wait for one
	ahead   int           // slots for audits since the last one for the line
}

const (
	firstSlots = 8 // more of several sessions would keep a slow server busy for seconds
	leastSlots = 4
	mostSlots  = 512

	auditsAhead = 2
)

// least returns the fewest slots. The swaps of one batch are one call, so fewer slots would cost
// more calls, one after another.
func (c *Common) least() int { return max(leastSlots, c.Batch) }

// A call of more than Config.Operation/crowdedPart has waited for others in the store if the
// quickest took less than its crowdedTimes part.
const (
	crowdedPart  = 2
	crowdedTimes = 3
)

// slot is the place of a machine among those that want to call the store.
type slot uint8

const (
	unasked slot = iota
	queued
	taken
)

func (t *slots) free() bool { return t.taken < t.bound }

// admit reports whether the machine may call the store. If not, it becomes ready when it may.
func (c *Common) admit(m *Machine) bool {
	t := &c.slots
	if t.bound == 0 {
		t.bound = max(firstSlots, 2*c.Batch) // two calls for swaps are in flight
	}
	audits := m.phase == held && m.cfg.unrenewed()
	switch {
	case m.cfg.Keeper || m.phase == held && !audits || m.slot == taken:
		return true
	case m.slot == queued:
		return false
	case t.free() && len(t.audits) == 0 && (audits || len(t.line) == 0):
		t.give(m)
		return true
	case audits:
		t.audits = append(t.audits, m)
	default:
		t.line = append(t.line, m)
	}
	m.slot = queued
	return false
}

// pass gives the slot of a machine without a call in flight to the next one.
func (c *Common) pass(m *Machine) {
	t := &c.slots
	if m.slot == taken {
		m.slot = unasked
		if m.ticket > 0 && !t.free() {
			t.settled++
		}
		t.taken--
		if t.settled >= t.bound {
			t.bound, t.settled = min(t.bound+1, mostSlots), 0
		}
	}
	for t.free() && len(t.audits)+len(t.line) > 0 {
		next := t.next()
		t.give(next)
		c.ready = append(c.ready, next)
	}
}

// next removes the machine whose turn it is from those that wait.
func (t *slots) next() *Machine {
	from := &t.audits
	t.ahead++
	if len(t.audits) == 0 || len(t.line) > 0 && t.ahead > auditsAhead {
		from, t.ahead = &t.line, 0
	}
	next := (*from)[0]
	*from = (*from)[1:]
	return next
}

func (t *slots) give(m *Machine) {
	t.taken++
	t.given++
	m.slot, m.ticket = taken, t.given
}

// timed notes how long a call has taken. The first calls of a session, for its own record, show how
// quick the store is. With the fewest slots, no call waits for others of this session: if one takes
// that long, the store itself is that slow.
func (t *slots) timed(m *Machine, took time.Duration) {
	long := took > m.cfg.Operation/crowdedPart
	fewest := m.slot == taken && m.ticket > t.halved && t.bound == m.cfg.Common.least()
	if t.quick == 0 || took < t.quick || long && fewest {
		t.quick = took
	}
	if long && took > crowdedTimes*t.quick {
		t.slow(m)
	}
}

// slow notes that a call of a machine in its slot has failed, or took long.
func (t *slots) slow(m *Machine) {
	if m.slot != taken {
		return
	}
	if m.ticket > t.halved {
		t.bound, t.settled, t.halved = max(m.cfg.Common.least(), t.bound/2), 0, t.given
	}
	m.ticket = 0
}

// rest lets a machine rely on its watch, or not. A watch can fall silent without an error, so of
// all machines that rest, one reads its lease every Config.Retry.
func (c *Common) rest(m *Machine, on bool) {
	switch {
	case on && m.resting == nil:
		if c.resting.Len() == 0 {
			c.audit = m.now.Mono + m.cfg.poll()
		}
		m.resting = c.resting.PushBack(m)
	case !on && m.resting != nil:
		first := c.resting.Front() == m.resting
		c.resting.Remove(m.resting)
		m.resting = nil
		if m.now.Mono >= c.audit {
			c.audit = m.now.Mono + m.cfg.poll()
		}
		if next := c.resting.Front(); first && next != nil {
			c.ready = append(c.ready, next.Value.(*Machine)) // its Wake is another now
		}
	}
}

// audits returns when the machine reads its lease although its watch reports nothing.
func (c *Common) audits(m *Machine) (at time.Duration, ok bool) {
	return c.audit, m.resting != nil && c.resting.Front() == m.resting
}

// forget removes a machine that will not be stepped again.
func (c *Common) forget(m *Machine) {
	c.rest(m, false)
	m.dropAhead(m.queue.ahead)
	c.drop(m.peer, m)
	m.peer = nil
	if m.slot == queued {
		same := func(o *Machine) bool { return o == m }
		c.slots.audits = slices.DeleteFunc(c.slots.audits, same)
		c.slots.line = slices.DeleteFunc(c.slots.line, same)
	}
}
