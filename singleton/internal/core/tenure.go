package core

import "time"

// onHeld handles a grant: it starts the instance if that is still wanted, else releases the grant
// at once.
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
		m.due = m.now.Add(m.cfg.Repeat) // an attempt that returns at once must not spin
		m.silence()
	}
}

func (m *Machine) start() {
	m.enter(Active)
	m.run++
	m.stoppedNow, m.lost, m.stuck = false, false, false
	m.started, m.stopDeadline = m.now, time.Time{}
	m.emit(Start{m.run, m.token})
}

// stop begins a planned move: the instance may handle the messages it has.
func (m *Machine) stop() {
	m.enter(Stopping)
	m.due = earliest(m.now.Add(m.cfg.HandOver), m.stopDeadline)
	m.emit(Pause{Token: m.token})
	m.emit(Stop{m.run})
}

func (m *Machine) stopNow() {
	if !m.stoppedNow {
		m.stoppedNow = true
		m.due = time.Time{}
		m.emit(StopNow{m.run})
	}
}

// onLost stops the instance at once: the lease leaves it only the time to finish a message. From
// then on another member may host, so messages and questions are passed on.
func (m *Machine) onLost(ev Lost) {
	if ev.Token != m.token {
		return
	}
	m.lost = true
	if ev.Silent {
		m.silence()
	}
	switch m.state {
	case Active:
		m.enter(Stopping)
		m.emit(Pause{Token: m.token, Lost: true})
		m.stopNow()
	case Stopping:
		m.stopNow()
	case BackOff:
		m.end()
	}
	if m.state == Stopping {
		m.due = m.now.Add(m.cfg.Hurry)
	}
}

// end ends the tenure between two tries. An instance that has panicked still exists, and the
// messages in its mailbox are lost.
func (m *Machine) end() {
	if !m.broken {
		m.release()
		return
	}
	m.broken = false
	m.enter(Stopping)
	m.emit(Pause{Token: m.token, Lost: true})
	m.stopNow()
}

// again starts or restarts the instance after a back-off.
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

// onGone continues after an instance: it releases the tenure if the instance was told to stop, else
// it waits to start the next one.
func (m *Machine) onGone(ev Gone) {
	if ev.Run != m.run {
		return
	}
	switch m.state {
	case Stopping:
		m.stuck = false
		m.release()
	case Active:
		m.fail(ev.Ran)
	case BackOff:
		m.broken = false
	}
}

func (m *Machine) onBroken(ev Broken) {
	if ev.Run == m.run && m.state == Active {
		m.fail(ev.Ran)
		m.broken = true
	}
}

// fail counts a failure of an instance and waits before the next try. Making it, and the message in
// which it failed, do not count as running: they may take long because a store does not answer.
func (m *Machine) fail(ran time.Duration) {
	if ran >= m.cfg.MaxBackOff {
		m.failures = 0
	}
	m.enter(BackOff)
	m.due = m.now.Add(min(m.cfg.MaxBackOff, m.cfg.BackOff<<min(m.failures, 16)))
	m.failures++
}

// fails reports whether instances keep failing here although this member has to host.
func (m *Machine) fails() bool {
	hosting := m.state == BackOff || m.state == Active && m.now.Sub(m.started) < m.cfg.MaxBackOff
	return hosting && m.failures >= m.cfg.Tries && !m.declining.on && !m.over()
}

// declineIfFailing declines, if another member can host then, when instances keep failing here, or
// when the instance of a lost tenure does not terminate, so that this member cannot make another
// one.
func (m *Machine) declineIfFailing() {
	if m.state == Stopping && m.lost && m.passed() {
		m.stuck, m.due = true, time.Time{}
	}
	if m.stuck {
		m.silence()
	}
	if m.state == BackOff && m.failures >= m.cfg.Tries && m.ring.others() && !m.over() &&
		!m.declining.asFailing() {
		m.decline()
		m.declining.faulty = true
	}
}

// release gives up the tenure. Invariant: its instance has terminated.
func (m *Machine) release() {
	m.enter(Releasing)
	m.emit(Release{m.token})
}

// onReleased ends the tenure. A release of unknown outcome continues in the background, or the
// lease expires; the next host then waits for that.
func (m *Machine) onReleased(ev Released) {
	if m.state != Releasing || ev.Token != m.token {
		return
	}
	m.token, m.lost = 0, false
	m.enter(Younger)
	if to, ok := m.Next(); ok && ev.Certain {
		m.emit(TellFree{to, ev.Token})
	}
}
