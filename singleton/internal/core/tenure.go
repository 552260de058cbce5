package core

import "time"

// onHeld takes a grant: for the instance if it is still wanted, else to release it at once.
func (m *Machine) onHeld(ev Held) {
	if ev.Attempt != m.attempt || m.state != AcquiringLease && m.state != Cancelling {
		if ev.Token != m.token {
			m.emit(Release{ev.Token})
		}
		return
	}
	m.token, m.failures = ev.Token, 0
	if !m.wanted() {
		m.release()
		return
	}
	m.start()
}

func (m *Machine) onFailed(ev Failed) {
	if ev.Attempt != m.attempt || m.state != AcquiringLease && m.state != Cancelling {
		return
	}
	asked := m.state == Cancelling
	m.enter(Younger)
	switch {
	case ev.Final:
		m.close()
	case asked, ev.Taken:
	default:
		m.due = m.now.Add(m.cfg.Repeat) // attempts wait; one that does not must not spin
		m.silence()
	}
}

func (m *Machine) start() {
	m.enter(Active)
	m.run++
	m.killed, m.started, m.hasty = false, m.now, time.Time{}
	m.emit(Start{m.run, m.token})
}

// stop begins a planned move: the instance may finish what it has.
func (m *Machine) stop() {
	m.enter(Stopping)
	m.due = earliest(m.now.Add(m.cfg.HandOver), m.hasty)
	m.emit(Pause{Token: m.token})
	m.emit(Stop{m.run})
}

func (m *Machine) kill() {
	if !m.killed {
		m.killed = true
		m.due = time.Time{}
		m.emit(Kill{m.run})
	}
}

// onLost ends the instance at once: the lease leaves it the time to finish a message, no more.
func (m *Machine) onLost(ev Lost) {
	if ev.Token != m.token {
		return
	}
	if ev.Silent {
		m.silence()
	}
	switch m.state {
	case Active:
		m.enter(Stopping)
		m.emit(Pause{Token: m.token, Lost: true})
		m.kill()
	case Stopping:
		m.kill()
	case BackOff:
		m.release()
	}
}

// onGone goes on after an instance: with the release if it was told to stop, else with the next one.
func (m *Machine) onGone(ev Gone) {
	if ev.Run != m.run {
		return
	}
	switch m.state {
	case Stopping:
		m.release()
	case Active:
		if m.now.Sub(m.started) >= m.cfg.MaxBackOff {
			m.failures = 0
		}
		m.enter(BackOff)
		m.due = m.now.Add(min(m.cfg.MaxBackOff, m.cfg.BackOff<<min(m.failures, 16)))
		m.failures++
	}
}

// release gives up the tenure. Invariant: its instance has terminated.
func (m *Machine) release() {
	m.enter(Releasing)
	m.emit(Release{m.token})
}

// onReleased ends the tenure. A release whose outcome is not known goes on in the background or expires;
// the next host then waits for that.
func (m *Machine) onReleased(ev Released) {
	if m.state != Releasing || ev.Token != m.token {
		return
	}
	m.token = 0
	m.enter(Younger)
	if to, ok := m.Next(); ok && ev.Certain {
		m.emit(TellFree{to, ev.Token})
	}
}
