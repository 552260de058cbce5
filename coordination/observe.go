package coordination

import (
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// ID identifies the session among all sessions, for Observe. It is not a secret, and no other
// session ever uses it again.
func (s *Session) ID() string { return s.nonce }

// maxID is longer than any ID, and short enough for the name of a session record.
const maxID = 64

// Observe follows the record of another session, given its ID, for all leases that are held through
// that session.
//
// A lease outlives its holder by the TTL, which each contender counts from the last renewal it has
// seen. A contender that first reads after the crash waits for a whole TTL from that read. If
// Observe is called before the crash, the TTL already runs while the crash is being detected: an
// Acquire is granted TTL·(1+ClockRateError)+Margin after the last renewal was seen. Observe costs
// one read of the store for each renewal if the store is a leasestore.Watcher, and one read every
// Config.RetryInterval in any case. A contender that waits in Acquire observes the holder without
// this call.
//
// If the other session has not renewed its record for that long, Observe ends it by a write to its
// record, whether or not anybody wants its leases.
//
// The other session need not hold anything, nor exist. The observation continues until stop is
// called or this session is closed; stop may be called more than once. Observe has no effect if the
// store keeps no session records. It returns ErrInvalid for an id that is empty or longer than 64
// bytes.
func (s *Session) Observe(id string) (stop func(), err error) {
	if id == "" || len(id) > maxID {
		return nil, fmt.Errorf("%w: session id %.80q has %d bytes, it must have from 1 to %d",
			ErrInvalid, id, len(id), maxID)
	}
	switch {
	case !s.opened():
		return nil, errNotOpened
	case id == s.nonce:
		return func() {}, nil
	}
	return s.until(func(l *loop) { l.follow(id, true) }, func(l *loop) { l.follow(id, false) }), nil
}

// observe follows the holder of the lease without claiming the lease. After a crash of the holder,
// an Acquire then counts the TTL from the last renewal instead of from its own first read; see
// Session.Observe. The observation continues until stop is called or the session is closed; stop
// may be called more than once.
func (l *Lease) observe() (stop func()) {
	if l.check() != nil {
		return func() {} // methods with an error result report it
	}
	return l.s.until(func(lp *loop) {
		lp.known(l).look(1)
	}, func(lp *loop) { lp.known(l).look(-1) })
}

// until runs begin in the loop now, and end when stop is called.
func (s *Session) until(begin, end func(*loop)) (stop func()) {
	if !s.send(message{do: begin}) {
		return func() {}
	}
	var once sync.Once
	return func() { once.Do(func() { s.send(message{do: end}) }) }
}

// look adds change to the number of observations of the lease.
func (d *driver) look(change int) {
	d.looks += change
	d.step(core.Look{On: d.looks > 0})
}

// observer is the driver of an observation and the number of calls that have asked for it.
type observer struct {
	driver *driver
	refs   int
}

// follow begins to observe another session, or stops when no caller asks for the observation any
// more.
func (l *loop) follow(id string, on bool) {
	o := l.observers[id]
	switch {
	case l.closing.begun:
	case on && o == nil:
		cfg := l.s.cfg.core(l.s.nonce)
		cfg.Common = l.s.common
		lease := &Lease{s: l.s, name: leasestore.SessionRecords + id}
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

// endObservers stops all observations.
func (l *loop) endObservers() {
	for id, o := range l.observers {
		delete(l.observers, id)
		o.driver.step(core.Close{})
	}
}
