package core

// onRelease gives a tenure up. A tenure that is already over needs nothing.
func (m *Machine) onRelease(ev Release) {
	mine := ev.Token == m.ten.token && (m.phase == held || m.phase == draining ||
		m.phase == releasing)
	if !mine {
		m.emit(Answer{ID: ev.ID, Outcome: Done})
		return
	}
	m.ten.releases = append(m.ten.releases, ev.ID)
	switch m.phase {
	case held:
		m.emit(End{Token: m.ten.token, Why: Released})
		m.release()
	case draining:
		m.release() // its work has stopped early
	}
}

func (m *Machine) onAbandon(ev Abandon) {
	if m.phase == held && ev.Token == m.ten.token {
		m.lose(End{Why: Closed})
	}
}

func (m *Machine) onClose() {
	if m.closing {
		return
	}
	m.closing, m.observed = true, false
	m.answerIf(Answer{Outcome: Shut}, func(waiter) bool { return true })
	switch {
	case m.phase == held:
		m.lose(End{Why: Closed})
	case m.phase != draining || m.ten.closed:
		return
	}
	m.ten.closed, m.ten.byClose, m.ten.closedAt = true, true, m.now
}

// passDraining ends the time that the work of an ended tenure had to stop. Work that a Close has
// not stopped in that time may still run, until the tenure ends by itself: its record is left to
// expire.
func (m *Machine) passDraining() {
	if m.ten.byClose && m.remaining() > 0 {
		m.left = true
		m.unsettled = true
		m.finish(Doubt)
		return
	}
	m.emit(Drained{m.ten.token})
	m.release()
}

// Left reports whether Close has left the record of a tenure, because its work had not stopped.
func (m *Machine) Left() bool { return m.left }

// release starts to blank the record. Invariant: no work of the tenure runs any more.
func (m *Machine) release() { m.enter(releasing) }

// blank keeps the token in the record, so that the next tenure has a larger one. If a claim was
// never seen in the record, blanking the claim's base version makes that claim impossible.
func (m *Machine) blank() {
	m.start(operation{kind: swapping})
	m.emit(Swap{m.op.id, m.ten.version, Record{Token: m.ten.token}, false})
}

func (m *Machine) onBlanked(ev Swapped) {
	if m.phase != releasing {
		return
	}
	switch ev.Status {
	case Written:
		m.high = max(m.high, m.ten.token)
		m.seen = observation{record: Record{Token: m.ten.token}, version: ev.Version,
			since: m.now.Mono,
			open:  true}
		m.finish(Done)
	case Conflicted:
		m.ten.reread = true
		m.due = m.now.Mono
	case Refused:
		outcome := StillHeld
		if m.remaining() <= 0 {
			outcome = Doubt // another session may have claimed it since
		}
		m.answerReleases(Answer{Outcome: outcome, Err: ev.Err})
		m.failed(m.cfg.Operation, ev.Err)
	default:
		m.failed(m.cfg.Operation, ev.Err)
	}
}

// reconsider decides, after a conflict, whether there is still a record to release.
func (m *Machine) reconsider() {
	m.ten.reread = false
	switch {
	case m.found():
		m.ten.written(m.seen.record.Token, m.seen.version)
		m.ten.prune(m.seen.record.Attempt)
	case m.seen.version == m.ten.version: // the claim has not been seen in the record
	default:
		m.finish(Done)
		return
	}
	m.due = m.now.Mono
}

// finish forgets the tenure and answers the pending releases.
func (m *Machine) finish(o Outcome) {
	a := Answer{Outcome: o, Err: m.lastErr}
	if o == Done && m.seen.open {
		a.Blank = Blank{m.seen.version, m.seen.record.Token}
	}
	m.answerReleases(a)
	if m.cfg.Keeper {
		m.emit(Over{m.ten.token, o})
	}
	m.ten, m.late, m.lastErr = tenure{}, nil, nil
	m.enter(idle)
}

func (m *Machine) answerReleases(a Answer) {
	if a.Outcome == Done {
		a.Err = nil
	}
	for _, id := range m.ten.releases {
		a.ID = id
		m.emit(a)
	}
	m.ten.releases = nil
}
