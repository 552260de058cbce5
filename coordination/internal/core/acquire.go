package core

import (
	"errors"
	"slices"
	"time"
)

// waiter is one caller of Acquire.
type waiter struct {
	id    uint64
	wait  bool
	after uint64 // only a read started after this operation may answer "taken"
	last  Answer // outcome of its last attempt
}

var (
	errContention  = errors.New("too many races lost")
	errNoTokens    = errors.New("no larger token left")
	errOthersFirst = errors.New("free, but other sessions are ahead in the queue")
)

func (m *Machine) onAcquire(ev Acquire) {
	switch {
	case m.closing:
		m.emit(Answer{ID: ev.ID, Outcome: Shut})
		return
	case m.phase == held:
		m.emit(Answer{ID: ev.ID, Outcome: Acquired, Token: m.ten.token})
		return
	case m.phase == waiting:
		m.enter(waiting)
	case m.phase == doubtful || m.phase == releasing:
		m.due = m.now.Mono // an earlier attempt must be resolved first
	}
	m.useBlank(ev.From)
	m.waiters = append(m.waiters, waiter{id: ev.ID, wait: ev.Wait, after: m.opCount,
		last: Answer{ID: ev.ID, Outcome: Doubt}})
}

// useBlank accepts the last holder's account of the record. If the record has changed by now, the
// claim fails like any late claim.
func (m *Machine) useBlank(b Blank) {
	if b.Version == "" || b.Token < m.high || b.Token > MaxToken || m.op.id != 0 ||
		m.phase != idle && m.phase != waiting {
		return
	}
	m.observe(Record{Token: b.Token}, b.Version)
	m.seen.open = blank(m.seen.record)
}

func (m *Machine) onCancel(ev Cancel) {
	i := slices.IndexFunc(m.waiters, func(w waiter) bool { return w.id == ev.ID })
	if i < 0 {
		return
	}
	last := m.waiters[i].last
	if last.Err == nil && m.failures > 0 {
		last.Err = m.lastErr
	}
	m.emit(last)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	m.unwanted()
}

// unwanted stops trying when no caller waits. A claim in flight is resolved first.
func (m *Machine) unwanted() {
	if !m.looking() && (m.phase == reading || m.phase == waiting) {
		m.phase = idle
	}
}

// looking reports whether the record must be read: a caller wants the lease, or it is followed.
func (m *Machine) looking() bool { return len(m.waiters) > 0 || m.observed }

func (m *Machine) patient() bool {
	return slices.ContainsFunc(m.waiters, func(w waiter) bool { return w.wait })
}

// answerTries answers the callers that make one attempt, and notes the outcome for the others.
func (m *Machine) answerTries(a Answer) {
	m.answerIf(a, func(w waiter) bool { return !w.wait })
}

func (m *Machine) answerIf(a Answer, match func(waiter) bool) {
	kept := m.waiters[:0]
	for _, w := range m.waiters {
		a.ID = w.id
		if match(w) {
			m.emit(a)
			continue
		}
		if w.wait {
			w.last = a
		}
		kept = append(kept, w)
	}
	m.waiters = kept
	m.unwanted()
}

// claimOpen claims, without another read, a lease that was released here, or that was free when the
// session had no record yet. If another session has held the lease since, the write fails. A waiter
// in a queue reads the queue first.
func (m *Machine) claimOpen() bool {
	if !m.seen.open || len(m.waiters) == 0 || m.orderly() {
		return false
	}
	m.seen.open = false
	m.claim()
	return true
}

// mayClaimOver reports whether the session through which the lease is held has turned out to be
// over, and a caller wants the lease. A waiter in a queue reads the queue first.
func (m *Machine) mayClaimOver() bool {
	return m.overThere() && len(m.waiters) > 0 && !m.orderly()
}

// claimOver claims such a lease without another read: the write is conditional on the version that
// was seen.
func (m *Machine) claimOver() bool {
	if !m.mayClaimOver() {
		return false
	}
	m.claim()
	return true
}

// evaluate continues after a fresh read. With Fair, a waiter enqueues before claiming, unless it
// could not claim.
func (m *Machine) evaluate(read uint64) {
	if m.orderly() && m.mayClaim() {
		m.enqueue(read)
		return
	}
	m.queue.skipped = true
	m.decide(read)
}

// decide acts on the record just read: it claims the lease, or answers with its holder and waits.
func (m *Machine) decide(read uint64) {
	if m.throughPeer() {
		m.consult(read)
		return
	}
	freeAt := m.freeAt()
	if m.now.Mono >= freeAt {
		m.claim()
		return
	}
	m.taken(read, freeAt)
}

// taken answers the callers that asked before the read with the holder of the lease.
func (m *Machine) taken(read uint64, freeAt time.Duration) {
	taken := Answer{Outcome: Taken, Holder: m.seen.record, Left: max(0, freeAt-m.now.Mono)}
	m.answerIf(taken, func(w waiter) bool { return !w.wait && read > w.after })
	m.queue.free = 0
	m.await(freeAt)
}

// await plans the next read after one that has shown until when the lease is held: forever, if only
// a change of the record can free it.
func (m *Machine) await(until time.Duration) {
	if !m.looking() {
		return
	}
	m.phase, m.races, m.until = waiting, 0, max(1, until)
	m.plan()
	m.useHint()
}

// plan plans the next read of a waiter: when the record may be taken, or sooner by polling, or at
// once for a caller that came, or a session record that was written, while the last read was in
// flight. A waiter that relies on its watch does not poll.
func (m *Machine) plan() {
	m.trusts = m.relies() && m.lives()
	switch {
	case m.phase != waiting || m.until == 0:
	case m.tried() || m.unplaced():
		m.due = m.now.Mono
	case m.trusts:
		m.due = forever
	case m.relies():
		m.due = m.until
	default:
		m.due = min(m.until, m.now.Mono+m.cfg.poll())
	}
}

// relies reports whether a waiter relies on its watch. One in a queue does so only while the lease
// is held: the watch does not report that a place ahead was given up.
func (m *Machine) relies() bool {
	return m.phase == waiting && m.until > 0 && m.reported && (!m.orderly() || m.placePersists())
}

// tried reports whether a caller makes a single attempt.
func (m *Machine) tried() bool {
	return slices.ContainsFunc(m.waiters, func(w waiter) bool { return !w.wait })
}

// claim begins a tenure with a write on the version just seen, if it is this session's turn and a
// caller wants the lease.
func (m *Machine) claim() {
	if len(m.waiters) == 0 {
		m.await(forever)
		return
	}
	if turn := m.turn(); m.now.Mono < turn {
		m.answerTries(Answer{Outcome: Doubt, Err: errOthersFirst}) // for waiters that give up now
		m.await(turn)
		return
	}
	if m.high >= MaxToken {
		m.answerTries(Answer{Outcome: Doubt, Err: errNoTokens})
		m.await(m.now.Mono + m.cfg.Retry)
		return
	}
	if m.cfg.Shared && !m.backed() {
		m.seen.open = blank(m.seen.record)
		m.enter(waiting)
		m.due += m.cfg.jittered(m.cfg.Retry) // Backed comes sooner if the store is reachable
		return
	}
	if m.orderly() && (m.queue.beat == 0 || m.queue.skipped) { // it could not claim at that read
		m.enter(reading)
		return
	}
	m.late = nil
	m.ten = tenure{token: m.high + 1, first: m.high + 1, previous: m.seen.record.Token,
		base:    m.seen.version,
		version: m.seen.version, session: m.back.token}
	m.phase = claiming
	m.write()
}

func (m *Machine) onClaimed(op operation, ev Swapped) {
	switch ev.Status {
	case Written:
		m.claimed(op, ev)
	case Conflicted:
		m.enter(doubtful) // an earlier attempt of ours may have caused the conflict
	case Refused:
		m.ten.drop(op.attempt)
		m.answerTries(Answer{Outcome: Doubt, Err: ev.Err})
		m.phase = doubtful
		m.failed(m.cfg.Retry, ev.Err)
	default:
		// It may be written later, also when the tenure was given up, or the record may be deleted
		// before it is read: no token is asked for twice, and no later tenure takes this write for
		// its own.
		m.high = max(m.high, m.ten.token)
		m.phase = doubtful
		m.failed(m.cfg.Operation, ev.Err)
	}
}

// claimed begins the tenure that a write has claimed.
func (m *Machine) claimed(op operation, ev Swapped) {
	m.ten.token = max(m.ten.token, ev.Token)
	m.wrote(op, ev.Version)
	m.adopt(op.attempt)
}

// resolve decides a claim of unknown outcome by the record just read.
func (m *Machine) resolve() {
	switch {
	case m.found():
		last := m.seen.record.Token >= m.ten.token
		m.ten.written(m.seen.record.Token, m.seen.version)
		if !last { // the claim with the last token may follow, if this record is deleted
			m.release()
			return
		}
		m.adopt(m.seen.record.Attempt)
	case m.seen.version == m.ten.base && len(m.waiters) > 0:
		m.claimAgain()
	case m.seen.version == m.ten.base && len(m.ten.attempts) > 0:
		m.release() // not written yet: make sure it never will be
	default:
		m.lostRace()
	}
}

// claimAgain repeats a claim that the record does not contain yet, in the same tenure. If the
// tenure of the session has ended, it first makes the claim impossible. If there was no record,
// the claim may have been written, seen by others, and deleted: they may know the tenure of its
// token to be over, so it asks for the next one.
func (m *Machine) claimAgain() {
	switch {
	case !m.cfg.Shared || m.backed() && m.back.token == m.ten.session:
		if m.ten.mayBeDeleted() {
			m.ten.token = min(MaxToken, max(m.high, m.ten.token)+1)
		}
		m.phase = claiming
		m.write()
	case len(m.ten.attempts) > 0:
		m.release()
	default:
		m.lostRace()
	}
}

// lostRace continues after a claim that another write has made impossible.
func (m *Machine) lostRace() {
	m.ten = tenure{}
	m.phase = reading
	m.retry(func() { m.evaluate(m.opCount) })
}

// retry runs f after a lost race, unless nobody waits any more or too many were lost.
func (m *Machine) retry(f func()) {
	m.races++
	m.unwanted()
	switch {
	case m.phase == idle:
	case m.races < maxRaces:
		f()
	default:
		m.answerTries(Answer{Outcome: Doubt, Err: errContention})
		m.await(m.now.Mono + m.cfg.backoff(m.cfg.Retry, 1))
	}
}

// adopt turns a claim found in the record into a tenure, if a caller wants it and its validity has
// not run out.
func (m *Machine) adopt(attempt uint64) {
	v, known := m.validityOf(attempt)
	if !known || !v.MayStart(m.now) || m.closing || len(m.waiters) == 0 {
		m.release()
		return
	}
	if m.cfg.Keeper && 2*m.now.Elapsed(v.Sent) >= v.StopAfter { // lost before another such write
		m.phase = claiming
		m.write()
		return
	}
	m.enter(held)
	m.races, m.lastErr = 0, nil
	m.ten.validity = v
	m.ten.prune(attempt)
	m.planRenewal(v)
	m.emit(Begin{m.ten.token, m.ten.previous, v})
	m.answerIf(Answer{Outcome: Acquired, Token: m.ten.token}, func(waiter) bool { return true })
}
