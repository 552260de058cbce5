package core

import "time"

// claims reports whether this member claims the instance: it may host, it is the first by its own
// preference, and age alone or another claim would elect another member.
//
// Only a claim moves the instance to a preferred member. So a host hands over to a member that has
// just said that it hosts, and members with different preferences elect one host nevertheless.
func (m *Machine) claims() bool {
	r := &m.ring
	return m.hasStarted && !m.over() && !m.declining.on && r.best().same(r.self) &&
		(!r.oldest().same(r.self) || r.rivals())
}

// yield begins the wait for a claim of the preferred member when this member is elected by age, and
// ends it when another member is elected or preferred.
func (m *Machine) yield() {
	b := m.ring.best()
	switch {
	case !m.wanted() || !b.known() || b.same(m.ring.self):
		m.grace = time.Time{}
	case m.grace.IsZero():
		m.grace = m.now.Add(m.cfg.Grace)
	}
}

// defers reports whether this member still waits for that claim. The wait is bounded, since the
// preferred member may not claim.
func (m *Machine) defers() bool { return m.now.Before(m.grace) }

// graceEnd returns when the wait ends; zero if it does not wait.
func (m *Machine) graceEnd() time.Time {
	if m.state != Younger || !m.defers() {
		return time.Time{}
	}
	return m.grace
}
