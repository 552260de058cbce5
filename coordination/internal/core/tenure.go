package core

import (
	"slices"
	"time"
)

// tenure is one time of holding the lease, from its claim until the record is certainly not ours.
type tenure struct {
	token    uint64
	asked    bool          // for that token: until the claim is known to be written, it may be larger in the record
	previous uint64        // token of the tenure before, as the record that the claim replaces has it; 0: none
	session  uint64        // token of the session record, with Config.Shared
	base     Version       // the claim is conditional on it
	version  Version       // the next write is conditional on it
	attempts []attempt     // writes that may be the record, oldest first
	count    uint64        // of attempts ever
	lastSent time.Duration // of any attempt; monotonic

	validity Validity
	warned   bool
	reread   bool // a write met another version: read before the next

	closedAt Reading // when Close ended it, if it did
	closed   bool
	releases []uint64 // Release requests to answer
}

type attempt struct {
	n    uint64
	sent Reading
}

// owns reports whether the record is of this tenure.
func (t *tenure) owns(r Record, nonce string) bool {
	return t.token != 0 && r.Nonce == nonce && (r.Token == t.token || t.asked && r.Token > t.token)
}

// written takes in what is known of the tenure's record.
func (t *tenure) written(token uint64, v Version) { t.token, t.asked, t.version = token, false, v }

// found reports whether the record just read is of the present tenure.
func (m *Machine) found() bool { return !m.seen.ghost && m.ten.owns(m.seen.record, m.cfg.Nonce) }

// validityOf counts from the send time of exactly the attempt that is in the record.
func (t *tenure) validityOf(n uint64, cfg Config) (Validity, bool) {
	for _, a := range t.attempts {
		if a.n == n {
			return cfg.validity(a.sent), true
		}
	}
	return Validity{}, false
}

// validityOf is the right that the attempt found in the record gives. Through a session it is that of the
// session's own record.
func (m *Machine) validityOf(attempt uint64) (Validity, bool) {
	if m.cfg.Shared {
		return m.back.validity, m.back.alive && m.back.token == m.ten.session
	}
	return m.ten.validityOf(attempt, m.cfg)
}

// planRenewal says when the record is written again, or read.
func (m *Machine) planRenewal(v Validity) {
	if m.cfg.unrenewed() {
		m.due = m.now.Mono + m.cfg.audit()
		return
	}
	m.due = v.Sent.Mono + m.cfg.jittered(m.cfg.Renew)
}

// prune forgets the attempts that cannot be in the record any more, since n is.
func (t *tenure) prune(n uint64) {
	t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.n <= n })
}

func (t *tenure) drop(n uint64) {
	t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.n == n })
}

// lapse is when whatever write of this tenure is in the record may be taken by those who saw it.
func (t *tenure) lapse(cfg Config) time.Duration {
	return t.lastSent + cfg.stale(cfg.TTL+cfg.LockDelay)
}

func (t *tenure) drainEnd(cfg Config) time.Duration {
	end := t.validity.Sent.Mono + t.validity.ValidFor
	if t.closed {
		end = min(end, t.closedAt.Mono+cfg.Drain)
	}
	return end
}

func (m *Machine) drained() bool {
	return m.ten.validity.Remaining(m.now) <= 0 || m.now.Mono >= m.ten.drainEnd(m.cfg)
}

// warnAfter is when, after the send time, less than a third of the TTL remains.
func (m *Machine) warnAfter() time.Duration { return m.ten.validity.ValidFor - m.cfg.TTL/3 }

// passHeld ends a tenure that was not renewed in time, and warns before.
func (m *Machine) passHeld() {
	v := m.ten.validity
	switch {
	case !v.MayStart(m.now):
		m.lose(End{Why: Expired, Err: m.lastErr})
	case !m.ten.warned && m.now.Elapsed(v.Sent) >= m.warnAfter():
		m.ten.warned = true
		m.emit(Warn{m.ten.token, v.Remaining(m.now)})
	}
}

// write sends the record of this tenure once more: the claim, or a renewal.
func (m *Machine) write() {
	t := &m.ten
	t.count++
	t.lastSent = m.now.Mono
	m.start(operation{kind: swapping, attempt: t.count})
	t.attempts = append(t.attempts, attempt{t.count, m.now})
	m.emit(Swap{m.op.id, t.version, m.recordOf(t.count)})
}

// recordOf is the record of an attempt of this tenure.
func (m *Machine) recordOf(attempt uint64) Record {
	return Record{Owner: m.cfg.Owner, Nonce: m.cfg.Nonce, Token: m.ten.token, Attempt: attempt, TTL: m.cfg.TTL + m.cfg.LockDelay,
		Session: m.ten.session, Forever: m.cfg.Forever}
}

func (m *Machine) onSwapped(ev Swapped) {
	op, ok := m.answered(ev.Op, swapping)
	if !ok {
		return
	}
	switch {
	case m.phase == claiming:
		m.onClaimed(op, ev)
	case op.attempt == 0:
		m.onBlanked(ev)
	default:
		m.onRenewed(op, ev)
	}
}

// wrote notes that our write is the record now.
func (m *Machine) wrote(op operation, v Version) {
	m.ten.written(m.ten.token, v)
	m.hazy = false // it was conditional on an older version
	m.high = max(m.high, m.ten.token)
	m.seen = observation{version: v, since: m.now.Mono, record: m.recordOf(op.attempt)}
}

// onRenewed takes in the answer to a renewal, also one that a loss or a release has overtaken.
func (m *Machine) onRenewed(op operation, ev Swapped) {
	switch ev.Status {
	case Written:
		m.wrote(op, ev.Version)
		m.extend(op.attempt)
		return
	case Conflicted:
		m.ten.reread = true
		m.due = m.now.Mono
		return
	case Refused:
		m.ten.drop(op.attempt)
	}
	if m.phase != held {
		m.due = m.now.Mono
		return
	}
	m.renewalFailed(ev.Err)
}

// renewalFailed plans the next try: the pauses double, but leave room for one more before stop-by,
// down to an eighth of the operation timeout.
func (m *Machine) renewalFailed(err error) {
	m.failed(m.cfg.Renew, err)
	left := m.ten.validity.Sent.Mono + m.ten.validity.StopAfter - m.now.Mono
	m.due = min(m.due, m.now.Mono+max(left/2, m.cfg.Operation/8))
}

// extend counts validity from the attempt found in the record. After a loss was told it changes
// nothing any more.
func (m *Machine) extend(n uint64) {
	v, known := m.ten.validityOf(n, m.cfg)
	m.ten.prune(n)
	m.due, m.failures = m.now.Mono, 0
	if m.phase != held || !known || v.Sent.Mono <= m.ten.validity.Sent.Mono {
		return
	}
	m.ten.validity, m.ten.warned, m.lastErr = v, false, nil
	m.due = v.Sent.Mono + m.cfg.jittered(m.cfg.Renew)
	m.emit(Extend{m.ten.token, v})
}

// confirm decides, after a conflict, whose record it is.
func (m *Machine) confirm() {
	switch {
	case m.found():
		m.ten.version, m.ten.reread = m.seen.version, false
		m.confirmed()
	case m.seen.version == "":
		m.lose(End{Why: RecordDeleted})
	default:
		m.lose(End{Why: TakenOver, Holder: m.seen.record})
	}
}

// confirmed goes on with a tenure that was found in the record.
func (m *Machine) confirmed() {
	if m.cfg.unrenewed() {
		m.failures = 0
		m.planRenewal(m.ten.validity)
		return
	}
	m.extend(m.seen.record.Attempt)
}

// lose ends the tenure, once. An expired or closed one may still be in the record.
func (m *Machine) lose(end End) {
	end.Token = m.ten.token
	m.emit(end)
	if end.Why == Expired || end.Why == Closed {
		m.enter(draining)
		return
	}
	m.finish(Done)
}
