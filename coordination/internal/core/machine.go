package core

import (
	"container/list"
	"context"
	"fmt"
	"time"
)

// phase is the phase of a machine; the package comment draws the transitions.
type phase uint8

const (
	idle      phase = iota // nothing wanted
	reading                // a caller wants the lease, the record is being read
	waiting                // another session holds it, or the store failed: read again at due
	claiming               // the write of a new tenure is in flight
	doubtful               // the outcome of that write is unknown: read until known
	held                   // the tenure is valid
	draining               // it is lost or closed; its work still has time to end
	releasing              // its work has stopped: the record is being blanked
)

// maxRaces bounds the races lost in one attempt.
const maxRaces = 3

var errTimeout = fmt.Errorf("no answer within the operation timeout: %w", context.DeadlineExceeded)

// Machine is the state of one lease name in one session. Only Step changes it.
type Machine struct {
	cfg   Config
	phase phase
	now   Reading
	out   []Effect

	waiters  []waiter // callers of Acquire
	races    int      // lost since the last answer
	closing  bool
	left     bool // a tenure whose work had not stopped was left to expire
	observed bool // the lease is followed, whether or not a caller wants it
	watching bool
	reported bool      // a change of the record would be reported
	followed [2]string // nonces of the sessions for which observers were requested
	hint     *Record   // last report of a watcher that came while no read was due

	opCount  uint64
	op       operation     // in flight, if op.id != 0
	late     []operation   // writes of the tenure that are overdue, and may still be answered
	due      time.Duration // when the next operation starts; monotonic
	until    time.Duration // while waiting: when the record may be taken; 0: it was not read
	trusts   bool          // while waiting: an observer notices when the record may be taken
	failures int           // consecutive, of the store
	lastErr  error

	seen      observation
	read      bool  // the record was read before
	unsettled bool  // a write of a tenure that was given up without an answer may still land
	high      Token // largest token ever seen
	ten       tenure
	back      backing // with Config.Shared
	peer      *peer   // of the session that holds the lease; nil: none was consulted
	queue     queue   // with Config.Fair
	slot      slot
	ticket    int           // of the slot; 0 after a failed call
	resting   *list.Element // in Common
}

type operation struct {
	id      uint64
	kind    kind
	attempt uint64 // of the write, 0 for a blank record
	sent    Reading
	look    uint64 // the read of the lease record that led to this operation
	known   Token  // largest tenure of the other session known before a read of its record
	patient bool   // a read for waiting callers, or a claim, which has twice the time
	slow    bool   // callers that make one attempt have been answered meanwhile
}

// kind is the kind of an operation.
type kind uint8

const (
	none kind = iota
	loading
	swapping
	consulting // reading the session record of another session
	ending     // ending its tenure
	enqueueing
	leaving
)

// observation is a version of the record, and when it was first seen.
type observation struct {
	record   Record
	version  Version
	since    time.Duration
	later    bool // the machine had read another version before
	vanished bool // the record has vanished; its holder may not know yet
	known    bool // of a session record: it has been read
	missed   bool // the session record has not named the tenure of this record, since missedAt
	missedAt time.Duration
	open     bool // it is free, as far as is known, and can be claimed without another read
}

// New returns an idle machine. No other session ever claims the record of a session, so a Keeper
// claims it without a read.
func New(cfg Config) *Machine {
	if cfg.Common == nil {
		cfg.Common = &Common{}
	}
	return &Machine{cfg: cfg, seen: observation{open: cfg.Keeper}}
}

// Quiet reports whether nothing is held, wanted or in flight.
func (m *Machine) Quiet() bool {
	return m.phase == idle && m.op.id == 0 && len(m.waiters) == 0 && m.queue.beat == 0
}

// Forget reports whether the machine may be forgotten: nothing is held, wanted or followed, and no
// write is in flight. If so, it must not be stepped again.
func (m *Machine) Forget() bool {
	if !m.Quiet() || m.observed || m.unsettled {
		return false
	}
	m.cfg.Common.forget(m)
	return true
}

// Waiters returns how many callers of Acquire wait for the lease.
func (m *Machine) Waiters() int { return len(m.waiters) }

// Seen returns the record that was read last, and the largest token ever seen.
func (m *Machine) Seen() (r Record, high Token) { return m.seen.record, m.high }

// Wanted reports whether the lease is held or a caller waits for it.
func (m *Machine) Wanted() bool { return m.phase == held || len(m.waiters) > 0 }

// Blank returns the version of the record, and whether the record was blank when it was last seen.
func (m *Machine) Blank() (Version, bool) {
	return m.seen.version, m.seen.version != "" && blank(m.seen.record)
}

// Step lets time advance to now, then handles the event. The effects must be carried out in order.
// The caller owns the returned slice.
func (m *Machine) Step(now Reading, ev Event) []Effect {
	m.now, m.out = now, nil
	if u, ok := ev.(Unbacked); ok {
		m.lastErr = u.Err // before a tenure that ends at the same moment ends without knowing why
	}
	m.pass()
	switch ev := ev.(type) {
	case Acquire:
		m.onAcquire(ev)
	case Cancel:
		m.onCancel(ev)
	case Release:
		m.onRelease(ev)
	case Abandon:
		m.onAbandon(ev)
	case Close:
		m.onClose()
	case Loaded:
		m.onLoaded(ev)
	case Swapped:
		m.onSwapped(ev)
	case Changed:
		m.onChanged(ev)
	case Unwatched:
		if m.reported { // else the watch has failed again, and must not put the next read off
			m.reported = false
			m.plan()
		}
	case SessionLoaded:
		m.onSessionLoaded(ev)
	case SessionEnded:
		m.onSessionEnded(ev)
	case Enqueued:
		m.onEnqueued(ev)
	case Left:
		m.onLeft(ev)
	case Backed:
		m.onBacked(ev)
	case Unbacked:
		m.onUnbacked(ev)
	case Unbackable:
		m.onUnbackable(ev)
	case Gone:
		m.onGone(ev)
	case Look:
		m.observed = ev.On && !m.closing
		m.unwanted()
	case Tick: // pass has done it all
	}
	m.proceed()
	m.watch()
	m.share()
	return m.out
}

// Wake returns when the machine wants a Tick, on the monotonic clock.
func (m *Machine) Wake() (at time.Duration, ok bool) {
	earliest := func(t time.Duration) {
		if t < forever && (!ok || t < at) {
			at, ok = t, true
		}
	}
	switch {
	case m.op.id != 0:
		earliest(m.op.sent.Mono + m.patience())
	case m.phase != idle && m.phase != draining && m.slot != queued:
		earliest(m.due)
		if audit, mine := m.cfg.Common.audits(m); mine {
			earliest(audit)
		}
	}
	switch m.phase {
	case held:
		earliest(m.ten.validity.Sent.Mono + m.ten.validity.StopAfter)
		if !m.ten.warned {
			earliest(m.ten.validity.Sent.Mono + m.warnAfter())
		}
	case draining:
		earliest(m.ten.drainEnd(m.cfg))
	}
	if m.unwantedTenure() && !m.cfg.unrenewed() {
		earliest(m.ten.lapse(m.cfg))
	}
	return at, ok
}

// pass does what is due by time alone.
func (m *Machine) pass() {
	switch waited := m.now.Mono - m.op.sent.Mono; {
	case m.op.id == 0 || waited < m.patience():
	case m.op.patient && waited < 2*m.cfg.patience():
		m.op.slow = true
		m.answerTries(Answer{Outcome: Doubt, Err: errTimeout})
		if m.cfg.Keeper && len(m.waiters) > 0 {
			m.emit(Failing{errTimeout})
		}
	default:
		m.onOverdue()
	}
	switch m.phase {
	case held:
		m.passHeld()
	case draining:
		if m.drained() {
			m.passDraining()
		}
	case doubtful, releasing:
		if m.unwantedTenure() && m.lapsed() {
			m.unsettled = true
			m.finish(Doubt) // a contender that watches the record may take it by now
		}
	}
}

// unwantedTenure reports whether the claim only remains to be undone.
func (m *Machine) unwantedTenure() bool {
	return m.phase == releasing || m.phase == doubtful && len(m.waiters) == 0
}

// lapsed reports whether the writes of the tenure have lost their effect.
func (m *Machine) lapsed() bool {
	switch {
	case m.cfg.Shared:
		return m.back.gone >= m.ten.session
	case m.cfg.Forever:
		return false
	}
	return m.now.Mono >= m.ten.lapse(m.cfg)
}

// patience returns how long the machine waits for the answer to its operation before it does
// something about it. A renewal of the session record is repeated without a pause, because its
// connection may have fallen silent: whichever answer comes first counts.
func (m *Machine) patience() time.Duration {
	switch {
	case m.op.slow:
		return 2 * m.cfg.patience()
	case m.op.patient, m.cfg.Keeper && m.phase == held && m.op.kind == swapping:
		return m.cfg.Operation
	}
	return m.cfg.patience()
}

// onOverdue gives an operation up. A late answer to it is ignored, except that a claim or a renewal
// counts whenever it is answered: on a slow store, or after a pause, a second one would come too
// late.
func (m *Machine) onOverdue() {
	switch op := m.op; op.kind {
	case loading:
		m.onLoaded(Loaded{Op: op.id, Err: errTimeout})
	case swapping:
		if m.phase == held || m.phase == claiming {
			m.late = append(m.late, op)
		}
		m.onSwapped(Swapped{Op: op.id, Err: errTimeout})
	case consulting:
		m.onSessionLoaded(SessionLoaded{Op: op.id, Err: errTimeout})
	case ending:
		m.onSessionEnded(SessionEnded{Op: op.id, Err: errTimeout})
	case enqueueing:
		m.onEnqueued(Enqueued{Op: op.id, Err: errTimeout})
	case leaving:
		m.onLeft(Left{Op: op.id, Err: errTimeout})
	}
}

// proceed starts the operation that is due, one at a time, when it is the slot is free.
func (m *Machine) proceed() {
	if m.phase == idle && m.looking() {
		m.enter(reading)
	}
	if m.phase == reading && m.op.kind != none && m.op.kind != enqueueing && m.mayClaimOver() {
		m.op, m.due = operation{}, m.now.Mono // the claim decides
	}
	switch {
	case m.op.id != 0 || !m.leaves() && !m.isDue() || !m.cfg.Common.admit(m):
		return
	case m.leaves(): // before anything else, or the next waiter would wait for us
		m.leave()
		return
	}
	switch m.phase {
	case reading, waiting:
		m.phase, m.until = reading, 0
		if !m.claimOpen() && !m.claimOver() {
			m.load()
		}
	case doubtful:
		m.load()
	case held:
		if m.ten.reread || m.cfg.unrenewed() {
			m.load()
		} else {
			m.write()
		}
	case releasing:
		if m.ten.reread {
			m.load()
		} else {
			m.blank()
		}
	}
}

// isDue reports whether an operation is due: by the time, or for a waiter because of what another
// machine or an observer has learnt.
func (m *Machine) isDue() bool {
	switch {
	case m.phase == idle || m.phase == draining:
		return false
	case m.now.Mono >= m.due:
		return true
	}
	audit, mine := m.cfg.Common.audits(m)
	return mine && m.now.Mono >= audit ||
		m.phase == waiting && (m.mayClaimOver() || m.until > 0 && m.trusts && !m.lives())
}

// share gives up the turn if no operation is in flight, and joins or leaves the machines that rely
// on their watches.
func (m *Machine) share() {
	c := m.cfg.Common
	c.rest(m, m.relies())
	if m.op.id == 0 {
		c.pass(m)
	}
}

// enter changes the phase; the next operation is due at once.
func (m *Machine) enter(p phase) { m.phase, m.due, m.until, m.failures = p, m.now.Mono, 0, 0 }

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

func (m *Machine) load() {
	m.start(operation{kind: loading, patient: m.phase == reading})
	m.emit(Load{m.op.id, m.op.patient})
}

func (m *Machine) start(op operation) {
	m.opCount++
	op.id, op.sent = m.opCount, m.now
	m.op = op
}

// answered ends the operation in flight, if the answer belongs to it.
func (m *Machine) answered(id uint64, k kind) (op operation, ok bool) {
	if id != m.op.id || k != m.op.kind {
		return operation{}, false
	}
	op, m.op = m.op, operation{}
	m.cfg.Common.slots.timed(m, m.now.Mono-op.sent.Mono)
	return op, true
}

// failed plans the next try after an inconclusive answer.
func (m *Machine) failed(base time.Duration, err error) {
	m.failures++
	m.lastErr = err
	m.until = 0
	m.cfg.Common.slots.slow(m)
	m.due = m.now.Mono + m.cfg.backoff(base, m.failures)
	if m.cfg.Keeper && len(m.waiters) > 0 {
		m.emit(Failing{err})
	}
}

func (m *Machine) onLoaded(ev Loaded) {
	op, ok := m.answered(ev.Op, loading)
	if !ok {
		return
	}
	if ev.Err != nil {
		m.onUnread(op, ev.Err)
		return
	}
	m.observe(ev.Record, ev.Version)
	switch m.phase {
	case reading:
		m.failures = 0
		m.evaluate(op.id)
	case doubtful:
		m.resolve()
	case held:
		m.confirm()
	case draining, releasing:
		m.reconsider()
	}
}

func (m *Machine) onUnread(op operation, err error) {
	switch m.phase {
	case reading:
		m.phase = waiting
		m.failed(m.cfg.Retry, err)
		m.answerTries(Answer{Outcome: Doubt, Err: err})
	case held:
		m.renewalFailed(op, err)
	case doubtful, releasing:
		m.failed(m.cfg.Operation, err)
	}
}

// observe remembers since when the record has its present version, and the largest token.
func (m *Machine) observe(r Record, v Version) {
	m.high = max(m.high, r.Token)
	defer func() { m.read = true }()
	if v == m.seen.version {
		return
	}
	next := observation{record: r, version: v, since: m.now.Mono, later: m.read}
	if v == "" && !blank(m.seen.record) {
		// an absent record does not mean a free lease
		next.record, next.vanished = m.seen.record, true
	}
	m.seen = next
}

// freeAt returns when the lease may be taken; zero if it is free.
func (m *Machine) freeAt() time.Duration {
	r := m.seen.record
	if blank(r) || r.Nonce == m.cfg.Nonce || m.inherits(r) { // if ours, no tenure of ours is left
		return 0
	}
	if m.seen.vanished && (r.Forever || r.Session != 0) {
		return m.seen.since + m.cfg.stale(noticeTTLs*min(r.TTL, MaxTTL))
	}
	if r.Forever {
		return forever
	}
	return m.seen.since + m.cfg.stale(r.TTL)
}

// inherits reports whether the record belongs to a session that this one succeeds: the caller
// guarantees that one session of an owner runs at a time. As in any claim, the conditional write on
// the record's version keeps others out.
//
// If two run nevertheless, the later one takes the lease once and keeps it: a session inherits
// nothing that was written since it read the record first, nothing after another session of the
// owner has taken a lease from it, and nothing that it reads for the first time when the record of
// a predecessor would have expired, unless that never expires.
func (m *Machine) inherits(r Record) bool {
	return m.cfg.Inherit && !m.cfg.Keeper && r.Owner == m.cfg.Owner && r.Nonce != m.cfg.Nonce &&
		!m.seen.later && !m.cfg.Common.succeeded &&
		(r.Forever || m.seen.since-m.cfg.Opened < m.cfg.stale(r.TTL))
}

// watch asks for hints while a caller waits for a lease that another session holds, or follows it.
func (m *Machine) watch() {
	follows := m.observed && (m.phase == reading || m.phase == waiting)
	want := (m.patient() || follows) && (m.watching || m.phase == waiting)
	if want != m.watching {
		m.watching, m.reported = want, false
		m.emit(Watch{On: want})
	}
	if !want {
		m.hint = nil
	}
	m.follow()
}

// follow asks for observers of the session through which the lease is held, while it is watched,
// and of the one that keeps the nearest place ahead, while the waiter can rely on its watch.
func (m *Machine) follow() {
	var want [2]string
	if m.watching && m.throughPeer() {
		want[0] = m.seen.record.Nonce
	}
	if m.reported {
		want[1] = m.nearestAhead()
	}
	for i, nonce := range want {
		if nonce == m.followed[i] {
			continue
		}
		if m.followed[i] != "" {
			m.emit(Follow{Nonce: m.followed[i]})
		}
		if nonce != "" {
			m.emit(Follow{Nonce: nonce, On: true})
		}
	}
	m.followed = want
}

// onChanged reads at once if the hint names another tenure than the one that is waited for, or a
// renewal of it.
func (m *Machine) onChanged(ev Changed) {
	m.hint = &ev.Record
	if m.watching && !m.reported {
		m.reported = true
		m.plan()
	}
	m.useHint()
}

func (m *Machine) useHint() {
	if m.phase != waiting || m.hint == nil {
		return
	}
	if h, r := m.hint, m.seen.record; blank(*h) || h.Token != r.Token || h.Attempt != r.Attempt {
		m.due = min(m.due, m.now.Mono+m.standsBack())
	}
	m.hint = nil
}
