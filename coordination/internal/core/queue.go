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
// A waiter that polls writes its place again with each read of the lease, which is every
// Config.Renew at the latest. The place names a TTL of a little more than three reads. A contender
// that has seen it unchanged for that TTL, plus rate error and a margin, ignores it: its session is
// dead, or cannot claim.
//
// A waiter that relies on its watch writes its place once, with the tenure of its session record.
// The place counts while that tenure is not known to be over: the next waiter behind observes the
// session, as it observes that of the holder. When the lease is free, the place must be used within
// its TTL: the watch may have fallen silent.
//
// A session that leaves the queue removes the places that do not count any more as well.

// Place is one session in the queue of a lease.
type Place struct {
	Nonce   string
	Beat    uint64 // grows with each write of the place
	TTL     time.Duration
	Session Token // tenure of the session record that keeps the place; 0: its beats do
}

// queue is the own place and what is known about the places ahead of it.
type queue struct {
	beat    uint64 // last beat asked to be written; 0: no place
	session Token  // as in the place last asked to be written
	skipped bool   // the lease record was read, and not the queue after it
	tries   int    // failed attempts to leave
	ahead   []sighting
	free    time.Duration // since when the lease is known to be free; 0: it is held
}

// sighting is a place, and when it was first seen with its present contents.
type sighting struct {
	place Place
	since time.Duration
	peer  *peer // of the session that keeps the place; nil: its beats do
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
	m.queue.beat, m.queue.tries, m.queue.session = m.op.id, 0, m.keepsPlace()
	m.queue.skipped = false
	m.emit(Enqueue{m.op.id, m.ownPlace()})
}

func (m *Machine) ownPlace() Place {
	return Place{Nonce: m.cfg.Nonce, Beat: m.queue.beat, TTL: m.cfg.placeTTL(),
		Session: m.queue.session}
}

// keepsPlace returns the tenure of the session record that keeps the own place, or 0 if the place
// is written again and again. The first place is written before the watch can run.
func (m *Machine) keepsPlace() Token {
	if !m.cfg.Shared || m.watching && !m.reported {
		return 0
	}
	return m.back.token
}

// placePersists reports whether the own place counts without being written again, while the
// holder's session is observed.
func (m *Machine) placePersists() bool {
	return m.queue.beat != 0 && m.queue.session != 0 && m.queue.session == m.back.token &&
		m.back.alive && m.lives()
}

func (m *Machine) onEnqueued(ev Enqueued) {
	op, ok := m.answered(ev.Op, enqueueing)
	if !ok {
		return
	}
	if ev.Err != nil {
		m.onUnread(op, ev.Err)
		return
	}
	m.observeAhead(ev.Ahead)
	if m.phase == reading {
		m.decide(op.look)
	}
}

// observeAhead remembers since when each place has its present contents.
func (m *Machine) observeAhead(ahead []Place) {
	before := m.queue.ahead
	m.queue.ahead = make([]sighting, len(ahead))
	for i, p := range ahead {
		s := sighting{place: p, since: m.now.Mono}
		if known := slices.IndexFunc(before, func(s sighting) bool {
			return s.place == p
		}); known >= 0 {
			s.since = before[known].since
		}
		if p.Session != 0 {
			s.peer = m.cfg.Common.hold(p.Nonce, m)
			s.peer.last = max(s.peer.last, p.Session)
		}
		m.queue.ahead[i] = s
	}
	m.dropAhead(before)
}

func (m *Machine) dropAhead(ahead []sighting) {
	for _, s := range ahead {
		m.cfg.Common.drop(s.peer, m)
	}
}

// nearestAhead returns the nonce of the session that keeps the nearest place ahead that counts.
// Each waiter observes that one session. So each dead place is noticed by the first waiter behind
// it, which removes it when it has had the lease.
func (m *Machine) nearestAhead() string {
	for _, s := range slices.Backward(m.queue.ahead) {
		if s.peer != nil && m.now.Mono < m.counts(s) {
			return s.place.Nonce
		}
	}
	return ""
}

// counts returns until when a place counts, if nothing new is seen.
func (m *Machine) counts(s sighting) time.Duration {
	switch p := s.peer; {
	case p == nil:
		return s.since + m.cfg.ignored(s.place.TTL)
	case p.over(s.place.Session):
		return 0
	case p.seen.known && !p.shows(s.place.Session): // deleted, or older: it may come back
		return max(s.since, p.seen.since) + m.cfg.ignored(s.place.TTL)
	case m.queue.free == 0:
		return forever
	}
	return max(s.since, m.queue.free) + m.cfg.ignored(s.place.TTL)
}

// turn returns when a free lease may be claimed, unless a session ahead leaves sooner or shows that
// it is alive.
func (m *Machine) turn() (at time.Duration) {
	if !m.orderly() {
		return 0
	}
	if m.queue.free == 0 {
		m.queue.free = max(1, m.now.Mono)
	}
	for _, s := range m.queue.ahead {
		at = max(at, m.counts(s))
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
		if m.now.Mono < m.counts(s) {
			ahead++
		}
	}
	return min(time.Duration(max(0, ahead-1))*(m.cfg.beat()/100), m.cfg.beat())
}

// leaves reports whether the place must be given up because no caller waits any more.
func (m *Machine) leaves() bool {
	return m.queue.beat != 0 && !m.patient()
}

// leave gives the place up, and removes the places ahead of it that do not count.
func (m *Machine) leave() {
	m.start(operation{kind: leaving})
	gone := []Place{m.ownPlace()}
	for _, s := range m.queue.ahead {
		if m.now.Mono >= m.counts(s) {
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
		m.dropAhead(m.queue.ahead)
		m.queue = queue{}
	}
}
