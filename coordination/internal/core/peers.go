package core

import "time"

// Peers is what the machines of one session know about the records of other sessions. They share
// it: a record that one machine has read or follows need not be waited for again by the others. The
// zero value is empty. Peers belongs to the goroutine of the machines.
type Peers struct {
	known     map[string]*peer
	succeeded bool // another session of the same owner has taken a lease from this one
}

// peer is what is known about the record of another session through which leases are held.
type peer struct {
	nonce  string
	refs   int // number of machines and observers that refer to it
	seen   observation
	last   uint64 // largest tenure that its record has named
	ended  uint64 // tenures of that session up to this one are over, for good
	buried bool   // a Bury was emitted for the tenure in seen
}

// hold returns the peer of a nonce, and counts a reference until drop.
func (p *Peers) hold(nonce string) *peer {
	q, ok := p.known[nonce]
	if !ok {
		if p.known == nil {
			p.known = map[string]*peer{}
		}
		q = &peer{nonce: nonce}
		p.known[nonce] = q
	}
	q.refs++
	return q
}

// drop gives up one reference, and forgets the peer with the last. A nil peer is allowed.
func (p *Peers) drop(q *peer) {
	if q == nil {
		return
	}
	if q.refs--; q.refs == 0 {
		delete(p.known, q.nonce)
	}
}

// observe takes in a read of the record. If a later read has overtaken it, the record looks younger
// than it is, which only costs time. Known is the largest tenure that was known when the read
// began: of a lease held through the session, or of the session's own record. A blank record ends
// that tenure and those before it, but not every tenure up to its Token: the store may show any
// larger one, and the session may begin a tenure with a token in between.
func (p *peer) observe(ev SessionLoaded, known uint64, now time.Duration) {
	if !p.seen.known || ev.Version != p.seen.version {
		p.seen = observation{record: ev.Record, version: ev.Version, since: now, known: true}
		p.buried = false
	}
	switch r := ev.Record; {
	case ev.Version == "": // no record: its holder may not know yet
	case r.blank() && r.Token >= known:
		p.ended = max(p.ended, known)
	case r.Nonce == p.nonce && r.Token > 0:
		p.last = max(p.last, r.Token)
		p.ended = max(p.ended, r.Token-1)
	}
}

// shows reports whether the record names that tenure of the session.
func (p *peer) shows(token uint64) bool {
	r := p.seen.record
	return p.seen.version != "" && r.Nonce == p.nonce && r.Token == token
}

// over reports whether a tenure of the session was given up, was followed by another tenure, or was
// not renewed in time. The result true is final.
func (p *peer) over(token uint64) bool { return token <= p.ended }

// lapse ends the tenure in seen, after a read that began late enough has found the record
// unchanged. It returns, once, the write that reports this end to contenders that have not watched.
func (p *peer) lapse() (Bury, bool) {
	r := p.seen.record
	if p.seen.version == "" || r.Nonce != p.nonce {
		return Bury{}, false
	}
	p.ended = max(p.ended, r.Token)
	if p.buried {
		return Bury{}, false
	}
	p.buried = true
	return Bury{p.nonce, p.seen.version, Record{Token: r.Token}}, true
}

// freeAt returns when the tenure in seen is over unless the record changes.
func (p *peer) freeAt(cfg Config) time.Duration {
	return p.seen.since + cfg.stale(p.seen.record.TTL)
}

// throughPeer reports whether the lease is held through the record of another session. If the
// lease's own record has been deleted, the life of the session says nothing about the lease.
func (m *Machine) throughPeer() bool {
	r := m.seen.record
	return r.Session != 0 && !r.blank() && r.Nonce != m.cfg.Nonce && !m.seen.vanished &&
		!m.inherits(r)
}

// consult checks the session that the lease record just read names: if its tenure is known to be
// over, the machine claims the lease, else it reads the session record.
func (m *Machine) consult(look uint64) {
	if m.peer == nil || m.peer.nonce != m.seen.record.Nonce {
		m.cfg.Peers.drop(m.peer)
		m.peer = m.cfg.Peers.hold(m.seen.record.Nonce)
	}
	if m.peer.over(m.seen.record.Session) {
		m.claim()
		return
	}
	m.start(operation{kind: consulting, look: look,
		known: max(m.seen.record.Session, m.peer.last)})
	m.emit(LoadSession{m.op.id, m.peer.nonce})
}

func (m *Machine) onSessionLoaded(ev SessionLoaded) {
	op, ok := m.answered(ev.Op, consulting)
	if !ok {
		return
	}
	if ev.Err != nil {
		m.onUnread(ev.Err)
		return
	}
	m.peer.observe(ev, op.known, m.now.Mono)
	if m.phase == reading {
		m.failures = 0
		m.judgeSession(op)
	}
}

// judgeSession decides on a lease that is held through another session. The tenure of that session
// is over if its record says so. It is also over if the record has been unchanged for long enough
// and a read that began after that still finds it unchanged, because then no renewal can have
// reached its holder in time. The end is final, so later changes do not matter.
func (m *Machine) judgeSession(op operation) {
	freeAt := m.sessionFreeAt()
	switch {
	case m.peer.over(m.seen.record.Session):
		m.claim()
	case op.sent.Mono >= freeAt:
		if b, ok := m.peer.lapse(); ok {
			m.emit(b)
		}
		m.claim()
	default:
		m.taken(op.look, freeAt)
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
