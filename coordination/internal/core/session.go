package core

import "time"

// A session may keep one record alive for all its leases instead of each lease's own. That session record
// is a lease like any other, of a name that nobody else claims, held by a machine of its own (Config.Keeper).
// What happens to it is told to the machines of the leases (Config.Shared) by Told.

// backing is what is known of the record of the own session.
type backing struct {
	token    uint64 // of its present or last tenure
	validity Validity
	alive    bool   // its end was not told
	gone     uint64 // tenures up to this one hold nothing any more, for anybody
}

// Told turns an effect of the keeper into what the machines of the leases need to know of it.
func Told(e Effect) (Event, bool) {
	switch e := e.(type) {
	case Begin:
		return Backed(e), true
	case Extend:
		return Backed(e), true
	case End:
		return Unbacked{Token: e.Token, Why: e.Why, Err: e.Err}, true
	case Failing:
		return Unbackable(e), true
	case Over:
		return Gone(e), true
	}
	return nil, false
}

// backed reports whether a lease may be claimed through the session.
func (m *Machine) backed() bool { return m.back.alive && m.back.validity.MayStart(m.now) }

// onBacked moves the deadline of what is held through the session; with a new tenure of it, claims may begin.
func (m *Machine) onBacked(ev Backed) {
	fresh := ev.Token != m.back.token
	m.back.token, m.back.validity, m.back.alive = ev.Token, ev.Validity, true
	switch {
	case m.phase == held && m.ten.session == ev.Token:
		m.ten.validity, m.ten.warned, m.lastErr = ev.Validity, false, nil
		m.emit(Extend{m.ten.token, ev.Validity})
	case m.phase == waiting && fresh:
		m.due = m.now.Mono
	}
}

// onUnbacked ends what was held through the session.
func (m *Machine) onUnbacked(ev Unbacked) {
	m.back.alive = false
	if m.phase == held && m.ten.session == ev.Token {
		m.lose(End{Why: ev.Why, Err: ev.Err})
	}
}

// onUnbackable answers who does not wait for the session. The next look is a new one, since this may go on for long.
func (m *Machine) onUnbackable(ev Unbackable) {
	m.seen.open = false
	if m.phase == waiting && !m.backed() {
		m.answerTries(Answer{Outcome: Doubt, Err: ev.Err})
	}
}

// onGone spares the release of what nobody believes any more.
func (m *Machine) onGone(ev Gone) {
	m.back.gone = max(m.back.gone, ev.Token)
	if m.unwantedTenure() && m.lapsed() {
		m.finish(ev.Outcome)
	}
}

// peer is what is known of the record of another session, through which the lease is held.
type peer struct {
	nonce  string
	seen   observation
	buried bool
}

// throughPeer reports whether the lease is held through the record of another session. The life of the session
// says nothing about a lease whose record has been deleted.
func (m *Machine) throughPeer() bool {
	r := m.seen.record
	return r.Session != 0 && !r.blank() && r.Nonce != m.cfg.Nonce && !m.seen.ghost
}

// consult reads the session record that the lease record just read names.
func (m *Machine) consult(look uint64) {
	if m.peer.nonce != m.seen.record.Nonce {
		m.peer = peer{nonce: m.seen.record.Nonce}
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

func (p *peer) observe(ev SessionLoaded, now time.Duration) {
	if p.seen.known && ev.Version == p.seen.version {
		return
	}
	p.seen = observation{record: ev.Record, version: ev.Version, since: now, known: true}
	p.buried = false
}

// judgeSession decides on a lease that is held through another session. That one is over if its record says
// so; or if a read that began when the record had been the same for long enough still finds it the same, for
// then no renewal can have reached its holder in time. It stays over, so what comes later changes nothing.
func (m *Machine) judgeSession(op operation) {
	freeAt := m.peer.freeAt(m.seen.record, m.cfg)
	switch {
	case m.peer.over(m.seen.record.Session):
		m.claim()
	case op.sent.Mono >= freeAt:
		m.bury()
		m.claim()
	default:
		m.taken(op.look, freeAt)
	}
}

// over reports that a tenure of the session was given up, or followed by another. A record that is not there says
// neither, whatever token the store's next one will exceed.
func (p *peer) over(token uint64) bool {
	r := p.seen.record
	return p.seen.version != "" && (r.Token > token || r.Token == token && r.blank())
}

// freeAt is when the session is over unless its record changes. Absence is not freedom here either: who keeps
// it may not know yet.
func (p *peer) freeAt(lease Record, cfg Config) time.Duration {
	ttl := p.seen.record.TTL
	if p.seen.version == "" {
		ttl = lease.TTL
	}
	return p.seen.since + cfg.stale(ttl)
}

// bury writes down that the session is over, once, for those who have not watched it.
func (m *Machine) bury() {
	if m.peer.buried || m.peer.seen.version == "" {
		return
	}
	m.peer.buried = true
	m.emit(Bury{m.peer.nonce, m.peer.seen.version, Record{Token: m.peer.seen.record.Token}})
}
