package core

import (
	"errors"
	"slices"
	"time"
)

// tenure is one period of holding the lease, from its claim until the record is certainly not ours.
type tenure struct {
	token    Token
	first    Token         // until the claim is known to be written: the smallest that it asked for
	previous Token         // token in the record that the claim replaces; 0: none
	session  Token         // token of the session record, with Config.Shared
	base     Version       // version that the claim is conditional on
	version  Version       // version that the next write is conditional on
	attempts []attempt     // writes that the record may contain, oldest first
	count    uint64        // attempts ever made
	sure     uint64        // the latest attempt that the record has had for certain
	lastSent time.Duration // of any attempt; monotonic

	validity Validity
	warned   bool
	reread   bool // a write met another version: read before the next write

	closedAt Reading // when Close, or a deleted record, ended it
	closed   bool
	byClose  bool     // its work may run as long as it is valid
	releases []uint64 // Release requests to answer
}

type attempt struct {
	n    uint64
	sent Reading
}

// owns reports whether the record belongs to this tenure.
func (t *tenure) owns(r Record, nonce string) bool {
	return t.token != 0 && r.Nonce == nonce &&
		(r.Token == t.token || t.first != 0 && r.Token >= t.first)
}

// mayBeDeleted reports whether the claim may have been written and deleted, unless the record shows
// it.
func (t *tenure) mayBeDeleted() bool { return t.base == "" && len(t.attempts) > 0 }

// written sets the token and the version under which the record is known to be written.
func (t *tenure) written(token Token, v Version) { t.token, t.first, t.version = token, 0, v }

// found reports whether the record just read belongs to the present tenure.
func (m *Machine) found() bool { return !m.seen.vanished && m.ten.owns(m.seen.record, m.cfg.Nonce) }

// validityOf returns the validity of attempt n, counted from the send time of exactly that attempt.
func (t *tenure) validityOf(n uint64, cfg Config) (Validity, bool) {
	for _, a := range t.attempts {
		if a.n == n {
			return cfg.validity(a.sent), true
		}
	}
	return Validity{}, false
}

// validityOf returns the validity that the attempt in the record gives. With Config.Shared it is
// the validity of the session record.
func (m *Machine) validityOf(attempt uint64) (Validity, bool) {
	if m.cfg.Shared {
		return m.back.validity, m.back.alive && m.back.token == m.ten.session
	}
	return m.ten.validityOf(attempt, m.cfg)
}

// planRenewal plans the next write or read of the record.
func (m *Machine) planRenewal(v Validity) {
	if m.cfg.unrenewed() {
		m.due = m.now.Mono + m.cfg.auditTenure()
		return
	}
	m.due = v.Sent.Mono + m.cfg.jittered(m.cfg.Renew)
}

// prune forgets the attempts that the record cannot contain any more, because it contains attempt
// n.
func (t *tenure) prune(n uint64) {
	t.sure = max(t.sure, n)
	t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.n <= n })
}

func (t *tenure) drop(n uint64) {
	t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.n == n })
}

// lapse returns when contenders that saw the record may take it, whichever write of this tenure it
// contains.
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
	return m.remaining() <= 0 || m.now.Mono >= m.ten.drainEnd(m.cfg)
}

// remaining returns the time that the work of the tenure has left. An ended tenure is not extended
// with the session record any more, but it ends with it: the session may expire first if the wall
// clock was set back before its last renewal, and ahead after it.
func (m *Machine) remaining() time.Duration {
	left := m.ten.validity.Remaining(m.now)
	switch {
	case !m.cfg.Shared:
		return left
	case m.back.token != m.ten.session:
		return 0
	}
	return min(left, m.back.validity.Remaining(m.now))
}

// warnAfter returns how long after the send time less than a third of the TTL remains.
func (m *Machine) warnAfter() time.Duration { return m.ten.validity.ValidFor - m.cfg.TTL/3 }

// passHeld ends a tenure that was not renewed in time, and warns before that.
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

// write sends the record of this tenure: the claim, or a renewal.
func (m *Machine) write() {
	t := &m.ten
	t.count++
	t.lastSent = m.now.Mono
	m.start(operation{kind: swapping, attempt: t.count, patient: m.phase == claiming})
	t.attempts = append(t.attempts, attempt{t.count, m.now})
	m.emit(Swap{m.op.id, t.version, m.recordOf(t.count), m.op.patient})
}

// recordOf returns the record of an attempt of this tenure.
func (m *Machine) recordOf(attempt uint64) Record {
	return Record{Owner: m.cfg.Owner, Nonce: m.cfg.Nonce, Token: m.ten.token, Attempt: attempt,
		TTL:     m.cfg.TTL + m.cfg.LockDelay,
		Session: m.ten.session, Forever: m.cfg.Forever}
}

func (m *Machine) onSwapped(ev Swapped) {
	op, ok := m.answered(ev.Op, swapping)
	if !ok {
		m.onLate(ev)
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

// onLate handles the answer to a claim or a renewal that was given up as overdue. A write that was
// sent instead depends on the version that this one has replaced, so its outcome does not matter,
// nor that of a read.
func (m *Machine) onLate(ev Swapped) {
	i := slices.IndexFunc(m.late, func(op operation) bool { return op.id == ev.Op })
	if i < 0 {
		return
	}
	op := m.late[i]
	m.late = slices.Delete(m.late, i, i+1)
	if _, possible := m.ten.validityOf(op.attempt, m.cfg); !possible || ev.Status != Written {
		return
	}
	switch {
	case m.phase == held:
		m.op = operation{}
		m.ten.reread = false
		m.wrote(op, ev.Version)
		m.extend(op.attempt)
	case m.ten.mayBeDeleted() && op.attempt < m.ten.count: // of another token: a read will tell
	case m.phase == claiming || m.phase == doubtful:
		m.op = operation{}
		m.claimed(op, ev)
	}
}

// wrote notes that our write is now the record.
func (m *Machine) wrote(op operation, v Version) {
	m.ten.written(m.ten.token, v)
	m.unsettled = false // our write was conditional on an older version
	m.high = max(m.high, m.ten.token)
	m.seen = observation{version: v, since: m.now.Mono, record: m.recordOf(op.attempt)}
}

// onRenewed handles the answer to a renewal, also after a loss or a release that came before the
// answer.
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
	m.renewalFailed(op, ev.Err)
}

// renewalFailed plans the next try. The pauses double, but leave room for one more try before
// stop-by, down to an eighth of the operation timeout. Those of a renewal count from the beginning
// of the call that failed, since its time is limited. That of an audit is not: a server may carry
// out the reads that were given up, so each is followed by the whole pause.
func (m *Machine) renewalFailed(op operation, err error) {
	m.failed(m.cfg.Renew, err)
	if m.cfg.unrenewed() {
		return
	}
	m.due = max(m.now.Mono, m.due-(m.now.Mono-op.sent.Mono))
	left := m.ten.validity.Sent.Mono + m.ten.validity.StopAfter - m.now.Mono
	m.due = min(m.due, m.now.Mono+max(left/2, m.cfg.Operation/8))
}

// extend counts validity from the attempt found in the record. It changes nothing after a loss was
// reported.
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

// confirm decides, after a conflict or an audit, which session the record belongs to.
func (m *Machine) confirm() {
	switch {
	case m.found() && m.cfg.Keeper && m.seen.record.Attempt < m.ten.sure:
		m.lose(End{Why: RecordDeleted, Err: errRestored})
	case m.found():
		m.ten.version, m.ten.reread = m.seen.version, false
		m.confirmed()
	case m.seen.version == "":
		m.deleted()
	default:
		if r := m.seen.record; r.Owner == m.cfg.Owner && !blank(r) {
			m.cfg.Common.succeeded = true
		}
		m.lose(End{Why: TakenOver, Holder: m.seen.record})
	}
}

// errRestored is the reason for the end of a session record that has an older content again. Leases
// that the session has released or lost since may name it again, and its renewals would keep these
// alive forever; so it begins another tenure, which ends them.
var errRestored = errors.New("the lease store has an older record than was written: it was " +
	"restored from a backup, or has lost writes")

// deleted ends a tenure whose record is absent. When its work has had time to end, the release
// writes a blank record where there is none: the token stays known, and a store that keeps more
// than the record, as etcd does with the holder's key, removes the rest. The name of a session
// record is not used by others, and the session needs its next tenure at once.
func (m *Machine) deleted() {
	if m.cfg.Keeper {
		m.lose(End{Why: RecordDeleted})
		return
	}
	m.ten.version, m.ten.reread = "", false
	m.ten.closed, m.ten.closedAt = true, m.now
	m.emit(End{Token: m.ten.token, Why: RecordDeleted})
	m.enter(draining)
}

// confirmed continues a tenure that was found in the record.
func (m *Machine) confirmed() {
	if m.cfg.unrenewed() {
		m.failures = 0
		m.planRenewal(m.ten.validity)
		return
	}
	m.extend(m.seen.record.Attempt)
}

// lose ends the tenure, once. After an expiry or a Close the record may still name the tenure.
func (m *Machine) lose(end End) {
	end.Token = m.ten.token
	m.emit(end)
	if end.Why == Expired || end.Why == Closed {
		m.enter(draining)
		return
	}
	m.finish(Done)
}
