package core

import "time"

// doubt is what the member that would host next knows about the elected one: whether that member
// has been seen to hold the lease. An elected member that does not acquire it, for whatever reason,
// must not silence the singleton. So the next member reads the lease until it has seen the tenure
// of the elected member. If it sees none for Config.Doubt, although the lease is free, or for three
// times as long, it does not count on that member for a while, which grows each time, and tries
// itself. The lease decides as always.
type doubt struct {
	of    Member    // the elected member
	sure  bool      // its tenure was seen
	since time.Time // since when the lease was read, and its tenure not seen; zero: not read
	free  time.Time // since when the lease has been free; zero: it was not, or was not read
	read  bool      // the lease was read since it was elected
	token uint64    // of the lease when it was read first; 0: it was free

	look time.Time // when the next read is due
}

// watch begins, continues or ends the doubt.
func (m *Machine) watch() {
	d, e := &m.doubt, m.ring.elect()
	if m.state != Younger || m.over() || m.declining.on || !m.hasStarted ||
		!m.ring.standby(m.ring.hosts, 1) {
		*d = doubt{}
		return
	}
	if !d.of.same(e) {
		*d = doubt{of: e, look: m.now}
	}
	switch a := m.ring.of(e); {
	case d.sure || a == nil:
		return
	case past(d.free, m.cfg.Doubt, m.now), past(d.since, 3*m.cfg.Doubt, m.now):
		a.shunned = m.now.Add(min(m.cfg.MaxReturn, m.cfg.Return<<min(a.shuns, 16)))
		a.shuns++
		*d = doubt{}
		return
	}
	if !m.declining.looking && !m.now.Before(d.look) {
		m.declining.probe++
		m.declining.looking, d.look = true, m.now.Add(m.cfg.Repeat)
		m.emit(Probe{m.declining.probe})
	}
}

func past(since time.Time, d time.Duration, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= d
}

// onRead handles the answer of a read of the lease.
func (d *doubt) onRead(m *Machine, ev Probed) {
	a := m.ring.of(d.of)
	if a == nil {
		return
	}
	if !ev.Reached {
		d.since, d.free = time.Time{}, time.Time{}
		return
	}
	if d.since.IsZero() {
		d.since = m.now
	}
	switch {
	case !ev.Taken:
		if d.free.IsZero() {
			d.free = m.now
		}
		d.read, d.token = true, 0
	case !d.read:
		d.read, d.token = true, ev.Token
		d.sure = a.token == ev.Token
	default:
		d.free = time.Time{}
		d.sure = ev.Token != d.token || a.token == ev.Token
	}
	if d.sure {
		a.shuns = 0
	}
}

// due returns when the lease is to be read next; zero if it is not.
func (d *doubt) due(looking bool) time.Time {
	if !d.of.known() || d.sure || looking {
		return time.Time{}
	}
	return d.look
}
