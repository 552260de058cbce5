package core

import "time"

// Peers is what the machines of one session know of the records of other sessions. They share it: a
// record that one of them has read or follows need not be waited for by the others. The zero value
// knows none. It belongs to the goroutine of the machines.
type Peers struct{ known map[string]*peer }

// peer is what is known of the record of another session, through which leases are held.
type peer struct {
	nonce  string
	refs   int // machines and observers that refer to it
	seen   observation
	ended  uint64 // tenures of that session up to this one are over, for good
	buried bool   // the end of the tenure in seen has been written down
}

// hold returns the peer of a nonce, until drop.
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

// drop forgets a peer that nothing refers to any more; nil is none.
func (p *Peers) drop(q *peer) {
	if q == nil {
		return
	}
	if q.refs--; q.refs == 0 {
		delete(p.known, q.nonce)
	}
}

// observe takes in a read of the record. A read that was overtaken by a later one makes the record look
// younger than it is, which costs time and nothing else.
func (p *peer) observe(ev SessionLoaded, now time.Duration) {
	if p.seen.known && ev.Version == p.seen.version {
		return
	}
	p.seen = observation{record: ev.Record, version: ev.Version, since: now, known: true}
	p.buried = false
	switch r := ev.Record; {
	case ev.Version == "": // it says nothing, whatever token the store's next record will exceed
	case r.blank():
		p.ended = max(p.ended, r.Token)
	case r.Token > 0:
		p.ended = max(p.ended, r.Token-1)
	}
}

// over reports that a tenure of the session was given up, was followed by another, or was not renewed
// in time. That is final.
func (p *peer) over(token uint64) bool { return token <= p.ended }

// lapse takes in that a read which began in time has found the record unchanged for long enough. It
// returns what is to be written down of it, once, for those who have not watched.
func (p *peer) lapse() (Bury, bool) {
	if p.seen.version == "" {
		return Bury{}, false
	}
	p.ended = max(p.ended, p.seen.record.Token)
	if p.buried {
		return Bury{}, false
	}
	p.buried = true
	return Bury{p.nonce, p.seen.version, Record{Token: p.seen.record.Token}}, true
}

// freeAt is when the session is over unless its record changes. An absent record frees nothing at once
// either: its holder may not know yet. It counts by the TTL of the lease.
func (p *peer) freeAt(leaseTTL time.Duration, cfg Config) time.Duration {
	ttl := p.seen.record.TTL
	if p.seen.version == "" {
		ttl = leaseTTL
	}
	return p.seen.since + cfg.stale(ttl)
}

// throughPeer reports whether the lease is held through the record of another session. The life of the
// session says nothing about a lease whose record has been deleted.
func (m *Machine) throughPeer() bool {
	r := m.seen.record
	return r.Session != 0 && !r.blank() && r.Nonce != m.cfg.Nonce && !m.seen.ghost && !m.inherits(r)
}

// consult asks about the session that the lease record just read names: what is known to be over stays
// over, else its record is read.
func (m *Machine) consult(look uint64) {
	if m.peer == nil || m.peer.nonce != m.seen.record.Nonce {
		m.cfg.Peers.drop(m.peer)
		m.peer = m.cfg.Peers.hold(m.seen.record.Nonce)
	}
	if m.peer.over(m.seen.record.Session) {
		m.claim()
		return
	}
	m.start(operation{kind: consulting, look: look})
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
	m.peer.observe(ev, m.now.Mono)
	if m.phase == reading {
		m.failures = 0
		m.judgeSession(op)
	}
}

// judgeSession decides on a lease that is held through another session. That one is over if its record
// says so; or if a read that began when the record had been the same for long enough still finds it the
// same, for then no renewal can have reached its holder in time. It stays over, so what comes later
// changes nothing.
func (m *Machine) judgeSession(op operation) {
	freeAt := m.peer.freeAt(m.seen.record.TTL, m.cfg)
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
