package core

import (
	"slices"
	"time"
)

// With Config.Fair, who waits for a lease stands in a queue that the store keeps, and claims a free lease only
// if nobody alive stands before it. The queue only orders who tries: the conditional write decides as always, so
// whatever is wrong with the queue costs order or time, never exclusion.
//
// A place is written again with each look at the lease, which is every Config.Renew at the latest, and names a
// TTL of a little more than three looks. One that somebody has seen unchanged for that TTL, longer by rate error and margin as for leases, does not
// count for him any more: who keeps it is dead, or cannot claim. Who leaves the queue takes such places along.

// Place is one session in the queue of a lease.
type Place struct {
	Nonce string
	Beat  uint64 // grows each time it is written
	TTL   time.Duration
}

// queue is the own place and what is known of those before it.
type queue struct {
	beat  uint64 // last that was asked to be written; 0: no place
	tries int    // to leave, that failed
	ahead []sighting
}

// sighting is a place, and when it was seen first as it is.
type sighting struct {
	place Place
	since time.Duration
}

// leaveTries bounds how often a place is given up. What then stays behind is passed over when its TTL has gone
// by.
const leaveTries = 2

// orderly reports that those who wait stand in the queue. One attempt does not wait, and takes what is free.
func (m *Machine) orderly() bool {
	return m.cfg.Fair && m.patient() && !slices.ContainsFunc(m.waiters, func(w waiter) bool { return !w.wait })
}

// enqueue takes a place at the end, or keeps the own one, after a read of the lease record.
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

// observe remembers since when each of the places is as it is.
func (q *queue) observe(ahead []Place, now time.Duration) {
	before := q.ahead
	q.ahead = make([]sighting, len(ahead))
	for i, p := range ahead {
		q.ahead[i] = sighting{p, now}
		if known := slices.IndexFunc(before, func(s sighting) bool { return s.place == p }); known >= 0 {
			q.ahead[i] = before[known]
		}
	}
}

// turn is when a free lease may be claimed, unless somebody before leaves sooner, or shows that he is alive.
func (m *Machine) turn() (at time.Duration) {
	if !m.orderly() {
		return 0
	}
	for _, s := range m.queue.ahead {
		at = max(at, s.since+m.cfg.stale(s.place.TTL))
	}
	return at
}

// leaves reports that a place is kept for nobody.
func (m *Machine) leaves() bool {
	return m.queue.beat != 0 && !m.patient()
}

// leave gives the place up, and takes along those that do not count any more.
func (m *Machine) leave() {
	m.start(operation{kind: leaving})
	gone := []Place{m.ownPlace()}
	for _, s := range m.queue.ahead {
		if m.now.Mono >= s.since+m.cfg.stale(s.place.TTL) {
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
