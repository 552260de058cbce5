package core

import "time"

// abstention is a member's own: for now it does not host, so that the next oldest may. Its gate is shut,
// its store does not answer, or instances keep failing here.
//
// The others believe it for a while, so it is repeated; when it has ended, that is told a few times, and
// if all of these are lost, it expires. It ends when the gate is open and the store has answered a look at
// the lease, and
//
//   - no other member may host, or
//   - nobody has the lease, and this member has not abstained before of late, or
//   - the store has answered for a while, which grows with each abstention: an instance that went to
//     another member is not taken back for a store that comes and goes.
//
// A member where instances failed does not take the instance back from one where they do not. It waits until
// no other member may host, or nobody has had the lease for MaxReturn, or the host says that they fail there
// too: then those take turns, each after a while, which grows.
type abstention struct {
	on   bool
	shut bool   // the gate is
	seq  uint64 // of the last word

	faulty  bool      // instances failed here
	begun   time.Time // when it began
	failing bool      // not abstaining, only hosting because nobody else may: the last word said so

	tell  time.Time // of the next announcement; zero: none
	again int       // announcements of the end that are left

	probe   uint64    // number of the last look
	looking bool      // it has not been answered
	look    time.Time // of the next one
	able    time.Time // since when looks have been answered; zero: the last was not
	taken   bool      // another session holds the lease
	vacant  time.Time // since when looks have found it nobody's; zero: the last has not

	times int       // in a row
	over  time.Time // when the last one ended
}

// repeatEnd is how often the end is told.
const repeatEnd = 3

// due is when a Wake is wanted; zero: not at all.
func (a *abstention) due(m *Machine) time.Time {
	if !a.on {
		return a.tell
	}
	at := a.tell
	if !a.looking && !a.shut {
		at = earliest(at, a.look)
	}
	if back := m.back(); !a.shut && m.now.Before(back) {
		at = earliest(at, back)
	}
	return at
}

// back is when this member has waited long enough to host although another one may; zero: not known.
func (m *Machine) back() time.Time {
	a := &m.abst
	switch {
	case a.able.IsZero():
		return time.Time{}
	case !a.faulty:
		return a.able.Add(a.patience(m.cfg))
	case m.ring.failing():
		return a.begun.Add(a.patience(m.cfg))
	case a.vacant.IsZero():
		return time.Time{}
	}
	return a.vacant.Add(m.cfg.MaxReturn)
}

// aside tells that instances failed here, and another member may host.
func (a *abstention) aside() bool { return a.on && a.faulty }

// patience is how long that must have lasted.
func (a *abstention) patience(cfg Config) time.Duration {
	return min(cfg.MaxReturn, cfg.Return<<min(max(a.times-1, 0), 16))
}

// onGate stops hosting, at once, or goes on when the store is there too.
func (m *Machine) onGate(ev Gate) {
	if m.abst.shut == !ev.Open {
		return
	}
	m.abst.shut = !ev.Open
	if m.abst.shut {
		m.hurry()
		m.abstain()
		return
	}
	m.abst.able, m.abst.vacant, m.abst.look = time.Time{}, time.Time{}, m.now
}

// silence abstains because of the store, if that lets another member host.
func (m *Machine) silence() {
	if m.ring.others() && !m.over() {
		m.abstain()
	}
}

func (m *Machine) abstain() {
	a := &m.abst
	if a.on {
		a.able, a.vacant = time.Time{}, time.Time{}
		return
	}
	if !a.over.IsZero() && m.now.Sub(a.over) >= m.cfg.MaxReturn {
		a.times = 0
	}
	a.times++
	a.seq++
	a.on, a.begun, a.failing, a.able, a.vacant = true, m.now, false, time.Time{}, time.Time{}
	a.look, a.tell = m.now.Add(m.cfg.Repeat), m.now
	m.ring.abstains = true
}

func (m *Machine) onProbed(ev Probed) {
	a := &m.abst
	if ev.Probe != a.probe || !a.looking {
		return
	}
	a.looking, a.taken = false, ev.Taken
	switch {
	case !ev.Reached:
		a.able = time.Time{}
	case a.able.IsZero():
		a.able = m.now
	}
	switch {
	case !ev.Reached || ev.Taken:
		a.vacant = time.Time{}
	case a.vacant.IsZero():
		a.vacant = m.now
	}
}

// attend ends an abstention that is not called for any more, and says what there is to say.
func (m *Machine) attend() {
	a := &m.abst
	if m.over() {
		a.looking, a.tell = false, time.Time{}
		return
	}
	if a.on && m.mayReturn() {
		a.on, a.faulty, a.over, a.again, a.tell = false, false, m.now, repeatEnd, m.now
		a.seq++
		m.ring.abstains = false
	}
	if failing := m.fails(); failing != a.failing {
		a.seq++
		a.failing, a.again, a.tell = failing, repeatEnd, m.now
	}
	if !a.tell.IsZero() && !m.now.Before(a.tell) {
		m.announce()
	}
	if a.on && !a.shut && !a.looking && !m.now.Before(a.look) {
		a.probe++
		a.looking, a.look = true, m.now.Add(m.cfg.Repeat)
		m.emit(Probe{a.probe})
	}
}

func (m *Machine) mayReturn() bool {
	a := &m.abst
	switch {
	case a.shut || a.able.IsZero():
		return false
	case !m.ring.others(), !a.taken && a.times == 1 && !a.faulty:
		return true
	}
	back := m.back()
	return !back.IsZero() && !m.now.Before(back)
}

func (m *Machine) announce() {
	a := &m.abst
	if a.on || a.failing {
		a.tell = m.now.Add(m.cfg.Repeat)
		m.emit(TellAbstain{a.seq, m.cfg.Abstain, a.failing})
		return
	}
	m.emit(TellAbstain{Seq: a.seq})
	a.tell = m.now.Add(m.cfg.Repeat)
	if a.again--; a.again == 0 {
		a.tell = time.Time{}
	}
}

func (m *Machine) onView(ev View) {
	if ev.Removed && !m.ring.removed {
		m.hurry()
	}
	m.ring.onView(ev)
	if m.closing {
		m.ring.onLeaving(m.ring.self)
	}
	if m.up.IsZero() {
		m.up = m.now
	}
}

// seat ends the start, in which a member does not host although it is the oldest that it sees: those that
// start with it may be older.
func (m *Machine) seat() {
	switch {
	case m.seated || m.up.IsZero():
	case m.cfg.MinMembers > 0:
		m.seated = len(m.ring.hosts) >= m.cfg.MinMembers
	default:
		m.seated = !m.now.Before(m.up.Add(m.cfg.Settle))
	}
}

// seatedAt is when the start is over, if only time has to pass.
func (m *Machine) seatedAt() time.Time {
	if m.seated || m.up.IsZero() || m.cfg.MinMembers > 0 {
		return time.Time{}
	}
	return m.up.Add(m.cfg.Settle)
}
