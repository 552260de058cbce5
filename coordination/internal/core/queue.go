package core

import (
	"slices"
	"time"
)

// With Config.Fair, waiters for a lease stand in a queue that the store keeps, and a waiter claims
// a free lease only if no living waiter is ahead of it. The queue only orders the attempts: the
// conditional write decides as always, so a fault of the queue costs order or time, never
// exclusion.
//
// A place is written again with each read of the lease, which is every Config.Renew at the latest,
// and names a TTL of a little more than three reads. A contender that has seen a place unchanged
// for that TTL, plus rate error and a margin, ignores it: its session is dead, or cannot claim. A
// session that leaves the queue removes such places as well.

// Place is one session in the queue of a lease.
type Place struct {
	Nonce string
	Beat  uint64 // grows with each write of the place
	TTL   time.Duration
}

// queue is the own place and what is known about the places ahead of it.
type queue struct {
	beat  uint64 // last beat asked to be written; 0: no place
	tries int    // failed attempts to leave
	ahead []sighting
}

// sighting is a place, and when it was first seen with its present contents.
type sighting struct {
	place Place
	since time.Duration
}

// leaveTries bounds the attempts to give a place up. Others pass over a place that stays behind
// when its TTL has passed.
const leaveTries = 2

// orderly reports whether the callers wait in the queue. A single attempt does not wait, and takes
// a free lease at once.
func (m *Machine) orderly() bool {
	return m.cfg.Fair && m.patient() && !slices.ContainsFunc(m.waiters, func(w waiter) bool {
		return !w.wait
	})
}

// mayClaim reports whether a claim could be made now. A waiter that cannot claim takes no place.
func (m *Machine) mayClaim() bool { return !m.cfg.Shared || m.backed() }

// unplaced reports whether the callers wait without the place that they could have by now.
func (m *Machine) unplaced() bool { return m.orderly() && m.queue.beat == 0 && m.mayClaim() }

// enqueue takes a place at the end, or keeps the present place, after a read of the lease record.
func (m *Machine) enqueue(look uint64) {
	m.start(operation{kind: enqueueing, look: look})
	m.queue.beat, m.queue.tries = m.op.id, 0
	m.emit(Enqueue{m.op.id, m.ownPlace()})
}

func (m *Machine) ownPlace() Place {
	return Place{Nonce: m.cfg.Nonce, Beat: m.queue.beat, TTL: m.cfg.placeTTL()}
}

func (m *Machine) onEnqueued(ev Enqueued) {
	op, ok := m.answered(ev.Op, enqueueing)
	if !ok {
		return
	}
	if ev.Err != nil {
		m.onUnread(ev.Err)
		return
	}
	m.queue.observe(ev.Ahead, m.now.Mono)
	if m.phase == reading {
		m.decide(op.look)
	}
}

// observe remembers since when each place has its present contents.
func (q *queue) observe(ahead []Place, now time.Duration) {
	before := q.ahead
	q.ahead = make([]sighting, len(ahead))
	for i, p := range ahead {
		q.ahead[i] = sighting{p, now}
		if known := slices.IndexFunc(before, func(s sighting) bool {
			return s.place == p
		}); known >= 0 {
			q.ahead[i] = before[known]
		}
	}
}

// turn returns when a free lease may be claimed, unless a session ahead leaves sooner or shows that
// it is alive.
func (m *Machine) turn() (at time.Duration) {
	if !m.orderly() {
		return 0
	}
	for _, s := range m.queue.ahead {
		at = max(at, s.since+m.cfg.ignored(s.place.TTL))
	}
	return at
}

// standsBack returns how long a waiter leaves a change of the lease to the living waiters ahead of
// it: a release wakes all waiters, and only the first, or the second if the first has left, can use
// it.
func (m *Machine) standsBack() time.Duration {
	if !m.orderly() {
		return 0
	}
	ahead := 0
	for _, s := range m.queue.ahead {
		if m.now.Mono < s.since+m.cfg.ignored(s.place.TTL) {
			ahead++
		}
	}
	return min(time.Duration(max(0, ahead-1))*(m.cfg.beat()/100), m.cfg.beat())
}

// leaves reports whether the place must be given up because no caller waits any more.
func (m *Machine) leaves() bool {
	return m.queue.beat != 0 && !m.patient()
}

// leave gives the place up, and removes the expired places ahead of it.
func (m *Machine) leave() {
	m.start(operation{kind: leaving})
	gone := []Place{m.ownPlace()}
	for _, s := range m.queue.ahead {
		if m.now.Mono >= s.since+m.cfg.ignored(s.place.TTL) {
			gone = append(gone, s.place)
		}
	}
	m.emit(Leave{m.op.id, gone})
}

func (m *Machine) onLeft(ev Left) {
	if _, ok := m.answered(ev.Op, leaving); !ok {
		return
	}
	if m.queue.tries++; ev.Err == nil || m.queue.tries >= leaveTries {
		m.queue = queue{}
	}
}
