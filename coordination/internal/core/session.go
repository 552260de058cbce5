package core

// A session may keep one record alive for all its leases instead of each lease's own. That session
// record is a lease like any other, of a name that no other session claims, held by a machine of
// its own (Config.Keeper). Told converts its effects to events for the machines of the leases
// (Config.Shared).

// backing is what is known about the own session record.
type backing struct {
	token    Token // of its present or last tenure
	validity Validity
	alive    bool  // its end was not reported
	gone     Token // no session believes tenures up to this one any more
}

// Told converts an effect of the keeper to the event that the machines of the leases need.
func Told(e Effect) (Event, bool) {
	switch e := e.(type) {
	case Begin:
		return Backed{e.Token, e.Validity}, true
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

// onBacked moves the deadline of the tenure held through the session. With a new tenure of the
// session record, claims may begin.
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

// onUnbacked ends the tenure held through the session. If the record of the session is not its own
// any more, the work of a tenure that had ended before has no time left either.
func (m *Machine) onUnbacked(ev Unbacked) {
	m.back.alive = false
	if ev.Why == TakenOver || ev.Why == RecordDeleted {
		m.back.validity = Validity{}
	}
	switch {
	case m.ten.session != ev.Token:
	case m.phase == held:
		m.lose(End{Why: ev.Why, Err: ev.Err})
	case m.phase == draining && m.drained():
		m.passDraining()
	}
}

// onUnbackable fails pending TryAcquire calls. The next claim reads the record first, since the
// outage may last long.
func (m *Machine) onUnbackable(ev Unbackable) {
	m.seen.open = false
	if m.phase == waiting && !m.backed() {
		m.answerTries(Answer{Outcome: Doubt, Err: ev.Err})
	}
}

// onGone finishes a tenure that no session believes any more, without writing a release.
func (m *Machine) onGone(ev Gone) {
	m.back.gone = max(m.back.gone, ev.Token)
	if m.unwantedTenure() && m.lapsed() {
		m.unsettled = true
		m.finish(ev.Outcome)
	}
}
