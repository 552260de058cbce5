package core

import (
	"slices"
	"time"
)

// peer is what is known about the record of another session through which leases are held.
type peer struct {
	nonce     string
	machines  []*Machine // that have asked for it
	observers int
	seen      observation
	report    report
	last      Token // largest tenure that its record has named
	ended     Token // tenures of that session up to this one are over, for good
	told      news  // to the machines
}

// report is a record that the watch has reported, and when. The read that follows finds the same
// write, which its attempt identifies, or a later one: the record has been so since the report, and
// a slow read costs the contenders no time.
type report struct {
	Record
	at time.Duration
}

func (r report) of(rec Record) bool {
	return r.Nonce != "" && r.Nonce == rec.Nonce && r.Token == rec.Token && r.Attempt == rec.Attempt &&
		r.TTL == rec.TTL
}

// news is what machines that rely on an observer must learn.
type news struct{ ended, named Token }

// hold returns the peer of a nonce, for a machine or, if that is nil, an observer, until drop.
func (c *Common) hold(nonce string, m *Machine) *peer {
	p, ok := c.known[nonce]
	if !ok {
		if c.known == nil {
			c.known = map[string]*peer{}
		}
		p = &peer{nonce: nonce}
		c.known[nonce] = p
	}
	if m == nil {
		p.observers++
	} else {
		p.machines = append(p.machines, m)
	}
	return p
}

// drop gives up what hold returned, and forgets a peer that nobody holds. A nil peer is allowed.
func (c *Common) drop(p *peer, m *Machine) {
	switch {
	case p == nil:
		return
	case m == nil:
		p.observers--
	default:
		i := slices.Index(p.machines, m)
		p.machines[i] = p.machines[len(p.machines)-1]
		p.machines = slices.Delete(p.machines, len(p.machines)-1, len(p.machines))
	}
	if p.observers == 0 && len(p.machines) == 0 {
		delete(c.known, p.nonce)
	}
}

// tell makes the machines ready that have asked for a peer, if one of its tenures has ended, or if
// its record names another tenure than before, or none.
func (c *Common) tell(p *peer) {
	now := news{ended: p.ended}
	if r := p.seen.record; p.shows(r.Token) {
		now.named = r.Token
	}
	if now != p.told {
		p.told = now
		c.ready = append(c.ready, p.machines...)
	}
}

// observe takes in a read of the record. If a later read has overtaken it, the record looks younger
// than it is, which only costs time. Known is the largest tenure that was known when the read
// began: of a lease held through the session, or of the session's own record. A blank record ends
// that tenure and those before it, but not every tenure up to its Token: the store may show any
// larger one, and the session may begin a tenure with a token in between.
func (p *peer) observe(ev SessionLoaded, known Token, now time.Duration) {
	if !p.seen.known || ev.Version != p.seen.version {
		p.seen = observation{record: ev.Record, version: ev.Version, since: now, known: true}
		if p.report.of(ev.Record) {
			p.seen.since = p.report.at
			p.report = report{} // a store that is restored may show that record again
		}
	}
	switch r := ev.Record; {
	case ev.Version == "": // no record: its holder may not know yet
	case blank(r) && r.Token >= known:
		p.ended = max(p.ended, known)
	case r.Nonce == p.nonce && r.Token > 0:
		p.last = max(p.last, r.Token)
		p.ended = max(p.ended, r.Token-1)
	}
}

// shows reports whether the record names that tenure of the session.
func (p *peer) shows(token Token) bool {
	r := p.seen.record
	return p.seen.version != "" && r.Nonce == p.nonce && r.Token == token
}

// over reports whether a tenure of the session was given up, was followed by another tenure, or was
// not renewed in time. The result true is final.
func (p *peer) over(token Token) bool { return token <= p.ended }

// end returns the write that ends the tenure in seen, if the record has not been written since it
// was seen.
func (p *peer) end(op uint64) EndSession {
	return EndSession{op, p.nonce, p.seen.version, Record{Token: p.seen.record.Token}}
}

// hasEnded notes that the write has ended the tenure of that token.
func (p *peer) hasEnded(token Token, v Version, now time.Duration) {
	p.ended = max(p.ended, token)
	p.seen = observation{record: Record{Token: token}, version: v, since: now, known: true}
}

// freeAt returns when the tenure in seen is over unless the record changes.
func (p *peer) freeAt(cfg Config) time.Duration {
	return p.seen.since + cfg.stale(p.seen.record.TTL)
}

// throughPeer reports whether the lease is held through the record of another session. If the
// lease's own record has been deleted, the life of the session says nothing about the lease.
func (m *Machine) throughPeer() bool {
	r := m.seen.record
	return r.Session != 0 && !blank(r) && r.Nonce != m.cfg.Nonce && !m.seen.vanished &&
		!m.inherits(r)
}

// overThere reports whether the tenure of another session through which the lease is held is known
// to be over.
func (m *Machine) overThere() bool {
	return m.throughPeer() && m.consults() && m.peer.over(m.seen.record.Session)
}

// consults reports whether the machine has asked for the session that the lease record names.
func (m *Machine) consults() bool { return m.peer != nil && m.peer.nonce == m.seen.record.Nonce }

// lives reports whether the session through which the lease is held is observed, or about to be,
// and its record was seen to name that tenure. The observer then notices the end of it.
func (m *Machine) lives() bool {
	return m.throughPeer() && m.consults() && (m.peer.observers > 0 || m.watching) &&
		m.peer.shows(m.seen.record.Session) && !m.peer.over(m.seen.record.Session)
}

// consult checks the session that the lease record just read names. If its tenure is known to be
// over, the machine claims the lease. Else it reads the session record, unless an observer does so
// and no caller needs to know now.
func (m *Machine) consult(look uint64) {
	if !m.consults() {
		m.cfg.Common.drop(m.peer, m)
		m.peer = m.cfg.Common.hold(m.seen.record.Nonce, m)
	}
	m.peer.last = max(m.peer.last, m.seen.record.Session)
	freeAt := m.peer.freeAt(m.cfg)
	switch {
	case m.overThere():
		m.claim()
	case m.peer.observers > 0 && m.lives() && !m.tried():
		m.taken(look, max(freeAt, m.now.Mono+m.cfg.Retry)) // the observer ends it
	default:
		m.loadSession(look)
	}
}

func (m *Machine) loadSession(look uint64) {
	m.start(operation{kind: consulting, look: look, known: m.peer.last, patient: true})
	m.emit(LoadSession{m.op.id, m.peer.nonce, true})
}

func (m *Machine) onSessionLoaded(ev SessionLoaded) {
	op, ok := m.answered(ev.Op, consulting)
	if !ok {
		return
	}
	if ev.Err != nil {
		m.onUnread(op, ev.Err)
		return
	}
	m.peer.observe(ev, op.known, m.now.Mono)
	if m.phase == reading {
		m.failures = 0
		m.judgeSession(op)
	}
	m.cfg.Common.tell(m.peer)
}

// judgeSession decides on a lease that is held through another session. The tenure of that session
// is over if its record says so. If the record has been unchanged for long enough, the machine ends
// the tenure.
func (m *Machine) judgeSession(op operation) {
	freeAt := m.sessionFreeAt()
	switch shows := m.peer.shows(m.seen.record.Session); {
	case m.overThere():
		m.claim()
	case shows && m.now.Mono >= freeAt:
		m.start(operation{kind: ending, look: op.look, known: m.seen.record.Session})
		m.emit(m.peer.end(m.op.id))
	case op.sent.Mono >= freeAt:
		m.claim()
	default:
		m.taken(op.look, freeAt)
	}
}

func (m *Machine) onSessionEnded(ev SessionEnded) {
	op, ok := m.answered(ev.Op, ending)
	switch {
	case !ok:
		return
	case ev.Status == Written:
		m.peer.hasEnded(op.known, ev.Version, m.now.Mono)
		m.cfg.Common.tell(m.peer)
		if m.phase == reading {
			m.claim()
		}
	case ev.Status != Conflicted:
		m.onUnread(op, ev.Err)
	case m.phase == reading:
		m.retry(func() { m.loadSession(op.look) })
	}
}

// sessionFreeAt returns when the lease is free unless the session's record changes. If the record
// does not name the tenure through which the lease is held, then it was deleted or replaced by an
// older one, and its holder may not know yet. So the TTL of the lease must pass after the first
// read of the session record that began when the lease had been seen.
func (m *Machine) sessionFreeAt() time.Duration {
	if m.peer.shows(m.seen.record.Session) {
		return m.peer.freeAt(m.cfg)
	}
	if !m.seen.missed {
		m.seen.missed, m.seen.missedAt = true, m.now.Mono
	}
	return max(m.seen.missedAt, m.peer.seen.since) + m.cfg.stale(m.seen.record.TTL)
}
