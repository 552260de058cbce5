package coordination

import (
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination/internal/core"
)

// ID identifies the session among all sessions, for Observe. It is not a secret, and is never used
// again by another session.
func (s *Session) ID() string { return s.nonce }

// maxID is longer than any ID, and short enough for the name of a session record.
const maxID = 64

// Observe follows the record of another session, given its ID, for all leases that are held through it.
//
// A lease outlives its holder by the TTL, which each contender counts from the last renewal that it has
// seen. A contender that looks only after it has missed the holder waits for a whole TTL from then on. With
// Observe, called early, the TTL runs while the crash is being noticed: an Acquire is granted
// TTL·(1+ClockRateError)+Margin after the last renewal was seen. It costs one read of the store for each
// renewal if the store is a Watcher, and one read every Config.RetryInterval in any case. A contender that
// waits in Acquire observes by itself.
//
// The other session need hold nothing, nor exist. The observation goes on until stop is called, as often as
// you like, or this session is closed. It has no effect if the store keeps no session records. An id that
// is empty or longer than 64 bytes is ErrInvalid.
func (s *Session) Observe(id string) (stop func(), err error) {
	if id == "" || len(id) > maxID {
		return nil, fmt.Errorf("%w: session id %.80q has %d bytes, it must have from 1 to %d", ErrInvalid, id, len(id), maxID)
	}
	if id == s.nonce {
		return func() {}, nil
	}
	return s.until(func(l *loop) { l.follow(id, true) }, func(l *loop) { l.follow(id, false) }), nil
}

// Observe follows who holds the lease, without claiming it. After a crash of the holder, an Acquire then
// counts the TTL from the last renewal instead of from its own first look; see Session.Observe. The
// observation goes on until stop is called, as often as you like, or the session is closed.
func (l *Lease) Observe() (stop func()) {
	if CheckName(l.name) != nil {
		return func() {} // calls that have an error return it
	}
	return l.s.until(func(lp *loop) { lp.known(l).look(1) }, func(lp *loop) { lp.known(l).look(-1) })
}

// until has the loop do begin now, and end when stop is called.
func (s *Session) until(begin, end func(*loop)) (stop func()) {
	if !s.send(message{do: begin}) {
		return func() {}
	}
	var once sync.Once
	return func() { once.Do(func() { s.send(message{do: end}) }) }
}

// look counts how often the lease is observed.
func (d *driver) look(change int) {
	d.looks += change
	d.step(core.Look{On: d.looks > 0})
}

// observer is the driver of an observation, and how many have asked for it.
type observer struct {
	driver *driver
	refs   int
}

// follow begins to observe another session, or ends it when it is not asked for any more.
func (l *loop) follow(id string, on bool) {
	o := l.observers[id]
	switch {
	case l.closing.begun:
	case on && o == nil:
		cfg := l.s.cfg.core(l.s.nonce)
		cfg.Peers = l.s.peers
		lease := &Lease{s: l.s, name: SessionRecords + id}
		lease.driver = newDriver(lease, core.NewObserver(cfg, id))
		lease.driver.loop = l
		l.observers[id] = &observer{lease.driver, 1}
		lease.driver.step(core.Tick{})
	case on:
		o.refs++
	case o != nil:
		if o.refs--; o.refs == 0 {
			delete(l.observers, id)
			o.driver.step(core.Close{})
		}
	}
}

// endObservers ends all observations.
func (l *loop) endObservers() {
	for id, o := range l.observers {
		delete(l.observers, id)
		o.driver.step(core.Close{})
	}
}
