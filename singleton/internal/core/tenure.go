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
		m.end()
	}
}

// end ends the tenure between two tries. An instance that has panicked is still there, and what it has is lost.
func (m *Machine) end() {
	if !m.broken {
		m.release()
		return
	}
	m.broken = false
	m.enter(Stopping)
	m.emit(Pause{Token: m.token, Lost: true})
	m.kill()
}

// again tries once more.
func (m *Machine) again() {
	if !m.broken {
		m.start()
		return
	}
	m.broken = false
	m.enter(Active)
	m.started = m.now
	m.emit(Restart{m.run})
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
		m.fail()
	case BackOff:
		m.broken = false
	}
}

func (m *Machine) onBroken(ev Broken) {
	if ev.Run == m.run && m.state == Active {
		m.fail()
		m.broken = true
	}
}

// fail counts a failure and waits before the next try.
func (m *Machine) fail() {
	if m.now.Sub(m.started) >= m.cfg.MaxBackOff {
		m.failures = 0
	}
	m.enter(BackOff)
	m.due = m.now.Add(min(m.cfg.MaxBackOff, m.cfg.BackOff<<min(m.failures, 16)))
	m.failures++
}

// fails tells that instances keep failing here, and this member hosts all the same.
func (m *Machine) fails() bool {
	hosting := m.state == BackOff || m.state == Active && m.now.Sub(m.started) < m.cfg.MaxBackOff
	return hosting && m.failures >= m.cfg.Tries && !m.abst.on && !m.over()
}

// stepAside abstains when instances keep failing here, if that lets another member host.
func (m *Machine) stepAside() {
	if m.state == BackOff && m.failures >= m.cfg.Tries && m.ring.others() && !m.over() && !m.abst.aside() {
		m.abstain()
		m.abst.faulty = true
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
