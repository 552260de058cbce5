package core

import "time"

// declining is the state of a member that declines to host: for now it does not, so that the next
// oldest may. Its gate is shut, its store does not answer, or instances keep failing here.
//
// Every member repeats its announcement, which is valid only for a while, whether it declines or
// not. It may host again when the gate is open, the store has answered a read of the lease, and
//
//   - no other member may host, or
//   - nobody has the lease, and this member has not declined before recently, or
//   - this member is starting, and an older one is there to host before it: else, when members are
//     replaced one soon after the other, none could host next, or
//   - the store has answered for a while, which grows each time that it declines: a store that comes
//     and goes does not take the instance back from another member.
//
// A member where instances failed does not take the instance back from a member where they do not
// fail. It waits until no other member may host, or nobody has had the lease for MaxReturn, or the
// host announces that they fail there too. Then these members take turns, each after a while that
// grows.
type declining struct {
	on   bool
	shut bool   // the gate is shut
	seq  uint64 // of the last announcement

	faulty  bool      // instances failed here
	begun   time.Time // when it began
	failing bool      // announced last: instances fail here, but no other member may host
	claims  bool      // announced last: this member claims the instance

	tell time.Time // when the next announcement is due; zero: none

	probe   uint64    // number of the last probe
	looking bool      // the last probe has not been answered
	look    time.Time // when the next probe is due
	able    time.Time // since when probes have been answered; zero: the last was not
	taken   bool      // another session holds the lease
	vacant  time.Time // since when probes have found the lease free; zero: the last did not

	times int       // it declined in a row
	over  time.Time // when it last stopped declining
}

// due returns when a Wake is wanted; zero if not at all.
func (a *declining) due(m *Machine) time.Time {
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

// back returns when this member has waited long enough to host although another member may; zero if
// that is not known.
func (m *Machine) back() time.Time {
	a := &m.declining
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

// asFailing reports whether the member declines because instances failed here.
func (a *declining) asFailing() bool { return a.on && a.faulty }

// patience returns how long the condition in back must have lasted.
func (a *declining) patience(cfg Config) time.Duration {
	return min(cfg.MaxReturn, cfg.Return<<min(max(a.times-1, 0), 16))
}

// onGate stops hosting at once if the gate is shut. If it is open, the member may return when the
// store answers too.
func (m *Machine) onGate(ev Gate) {
	if m.declining.shut == !ev.Open {
		return
	}
	m.declining.shut = !ev.Open
	if m.declining.shut {
		m.hurry()
		m.decline()
		return
	}
	m.opened = m.now
	m.declining.able, m.declining.vacant, m.declining.look = time.Time{}, time.Time{}, m.now
}

// silence declines because of the store or a stuck instance, if another member can host then.
func (m *Machine) silence() {
	if m.ring.others() && !m.over() {
		m.decline()
	}
}

func (m *Machine) decline() {
	a := &m.declining
	if a.on {
		a.able, a.vacant = time.Time{}, time.Time{}
		return
	}
	if !a.over.IsZero() && m.now.Sub(a.over) >= m.cfg.MaxReturn {
		a.times = 0
	}
	a.times++
	a.seq++
	a.on, a.begun, a.failing, a.claims = true, m.now, false, false
	a.able, a.vacant = time.Time{}, time.Time{}
	a.look, a.tell = m.now.Add(m.cfg.Repeat), m.now
	m.ring.declines, m.ring.claims = true, false
}

func (m *Machine) onProbed(ev Probed) {
	a := &m.declining
	if ev.Probe != a.probe || !a.looking {
		return
	}
	a.looking = false
	if !a.on {
		m.doubt.onRead(m, ev)
		return
	}
	a.taken = ev.Taken
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

// attend stops declining when no reason is left, and emits the announcements and probes
// that are due.
func (m *Machine) attend() {
	a := &m.declining
	if m.over() {
		a.looking, a.tell = false, time.Time{}
		return
	}
	if a.on && m.mayReturn() {
		a.on, a.faulty, a.over, a.tell = false, false, m.now, m.now
		a.seq++
		m.ring.declines = false
	}
	if failing, claims := m.fails(), m.claims(); failing != a.failing || claims != a.claims {
		a.seq++
		a.failing, a.claims, a.tell = failing, claims, m.now
		m.ring.claims = claims
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
	a := &m.declining
	switch {
	case a.shut || m.lost || a.able.IsZero():
		return false
	case !m.ring.others(), a.times == 1 && !a.faulty && (!a.taken || !m.hasStarted):
		return true
	}
	back := m.back()
	return !back.IsZero() && !m.now.Before(back)
}

func (m *Machine) announce() {
	a := &m.declining
	a.tell = m.now.Add(m.cfg.Repeat)
	e := Announce{Seq: a.seq, Failing: a.failing, Claims: a.claims}
	if a.on || a.failing || a.claims {
		e.For = m.cfg.AnnouncedFor
	}
	if m.state == Active {
		e.Token = m.token
	}
	m.emit(e)
}

func (m *Machine) onView(ev View) {
	if ev.Removed && !m.ring.removed {
		m.hurry()
	}
	if m.ring.onView(ev) || m.up.IsZero() {
		m.declining.tell = m.now
	}
	if m.closing {
		m.ring.onLeaving(m.ring.self)
	}
	if m.up.IsZero() {
		m.up = m.now
		m.opened = m.now
	}
}

// endStart ends the start, in which a member does not host although it is the oldest that it sees:
// members that start with it may be older. That is over when another member has the instance: a
// member that replaces another one while a third is missing must be able to host next. An older one
// may also decline a moment longer than this member, until it knows which side of the cluster
// hosts, and would then take the instance back.
func (m *Machine) endStart() {
	if m.hasStarted || m.up.IsZero() {
		return
	}
	enough := len(m.ring.hosts) >= m.cfg.MinMembers
	if m.cfg.MinMembers == 0 {
		enough = !m.now.Before(m.up.Add(m.cfg.Settle))
	}
	m.met = m.met || enough || m.ring.hosted()
	m.hasStarted = m.met && !m.declining.shut && !m.lets()
}

// Waits returns since when this member, which should host, waits for MinMembers, and how many it
// sees; zero if it does not.
func (m *Machine) Waits() (since time.Time, seen int) {
	if m.met || m.cfg.MinMembers == 0 || !m.elected() {
		return time.Time{}, 0
	}
	return m.up, len(m.ring.hosts)
}

// lets reports whether this member, in its start, lets an older one host that may decline.
func (m *Machine) lets() bool {
	return m.ring.older() && m.now.Before(m.opened.Add(m.cfg.Settle))
}

// startEnds returns when the start is over, if only time has to pass.
func (m *Machine) startEnds() time.Time {
	switch {
	case m.hasStarted || m.up.IsZero() || m.declining.shut:
	case m.lets():
		return m.opened.Add(m.cfg.Settle)
	case m.cfg.MinMembers <= 0:
		return m.up.Add(m.cfg.Settle)
	}
	return time.Time{}
}
