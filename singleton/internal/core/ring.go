package core

import (
	"slices"
	"time"
)

// Member is one incarnation of a member.
type Member struct {
	ID          string
	Incarnation uint64
	Address     string
}

func (m Member) same(o Member) bool { return m.ID == o.ID && m.Incarnation == o.Incarnation }

func (m Member) known() bool { return m.ID != "" }

// ring holds the members that may host.
//
// Invariant: departed ⊆ hosts and absent ⊆ hosts, so they are as bounded as the view.
type ring struct {
	now      time.Time
	self     Member
	hosts    []Member // oldest first
	prefers  []Member // best first, by this member's preference; nil: it has none
	departed []Member // members that will not host any more
	absent   []absence
	abstains bool // self abstains
	claims   bool // self claims the instance
	removed  bool
}

// absence is the last announcement of a member on whether it hosts.
type absence struct {
	member Member
	seq    uint64
	until  time.Time // zero: it may

	failing, claims bool // it hosts, but instances fail there; it claims the instance
}

// longestAbsence bounds how long an announcement is valid.
const longestAbsence = time.Minute

func (r *ring) onView(v View) {
	r.self, r.hosts, r.prefers = v.Self, slices.Clone(v.Hosts), slices.Clone(v.Preferred)
	r.removed = r.removed || v.Removed
	r.departed = slices.DeleteFunc(r.departed, func(m Member) bool { return !r.listed(m) })
	r.absent = slices.DeleteFunc(r.absent, func(a absence) bool { return !r.listed(a.member) })
}

// onAbstain handles an announcement of another member, unless a newer one is known.
func (r *ring) onAbstain(ev Abstain) {
	if !r.listed(ev.From) || ev.From.same(r.self) {
		return
	}
	i := slices.IndexFunc(r.absent, func(a absence) bool { return a.member.same(ev.From) })
	if i < 0 {
		i = len(r.absent)
		r.absent = append(r.absent, absence{member: ev.From})
	}
	a := &r.absent[i]
	switch {
	case ev.Seq < a.seq:
	case ev.For <= 0:
		a.seq, a.until = ev.Seq, time.Time{}
	case ev.Seq > a.seq || !a.until.IsZero():
		a.seq, a.until = ev.Seq, r.now.Add(min(ev.For, longestAbsence))
		a.failing, a.claims = ev.Failing, ev.Claims
	}
}

// absentNow reports whether a member abstains.
func (r *ring) absentNow(m Member) bool {
	if m.same(r.self) {
		return r.abstains
	}
	return slices.ContainsFunc(r.absent, func(a absence) bool {
		return a.member.same(m) && !a.failing && !a.claims && r.now.Before(a.until)
	})
}

// claimed reports whether a member claims the instance.
func (r *ring) claimed(m Member) bool {
	if m.same(r.self) {
		return r.claims
	}
	return slices.ContainsFunc(r.absent, func(a absence) bool {
		return a.member.same(m) && a.claims && r.now.Before(a.until)
	})
}

// failing reports whether another member hosts and instances fail there.
func (r *ring) failing() bool {
	return slices.ContainsFunc(r.absent, func(a absence) bool {
		return a.failing && r.now.Before(a.until)
	})
}

// due returns when the next announcement expires; zero if there is none.
func (r *ring) due() (at time.Time) {
	for _, a := range r.absent {
		if r.now.Before(a.until) {
			at = earliest(at, a.until)
		}
	}
	return at
}

// earliest returns the first of the times that are not zero.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// others reports whether another member may host.
func (r *ring) others() bool {
	return slices.ContainsFunc(r.hosts, func(m Member) bool { return !m.same(r.self) && r.able(m) })
}

// able reports whether a member may host, as far as we know.
func (r *ring) able(m Member) bool { return !r.left(m) && !r.absentNow(m) }

// onLeaving records that a member will not host any more, and reports whether that is new.
func (r *ring) onLeaving(m Member) bool {
	if !r.listed(m) || r.left(m) {
		return false
	}
	r.departed = append(r.departed, m)
	return true
}

func (r *ring) listed(m Member) bool { return slices.ContainsFunc(r.hosts, m.same) }

// elect returns the member that should host: the oldest of those that claim the instance, else the
// oldest; the zero Member if none is known. Members with equal views and announcements elect the
// same one, whatever each of them prefers, and the elected member knows that it is.
func (r *ring) elect() Member {
	for _, m := range r.hosts {
		if r.claimed(m) && r.able(m) {
			return m
		}
	}
	return r.oldest()
}

// oldest returns the oldest member that may host; the zero Member if none is known.
func (r *ring) oldest() Member { return r.first(r.hosts) }

// best returns the member that this member prefers; the zero Member if it has no preference.
func (r *ring) best() Member { return r.first(r.prefers) }

// first returns the first of the members that may host; the zero Member if there is none.
func (r *ring) first(order []Member) Member {
	for _, m := range order {
		if r.able(m) {
			return m
		}
	}
	return Member{}
}

// rivals reports whether another member claims the instance and may host.
func (r *ring) rivals() bool {
	return slices.ContainsFunc(r.hosts, func(m Member) bool {
		return !m.same(r.self) && r.claimed(m) && r.able(m)
	})
}

// heir reports whether this member is one of the first n in the given order, of the members that
// may host, without the elected one.
func (r *ring) heir(order []Member, n int) bool {
	elected := r.elect()
	for _, m := range order {
		switch {
		case m.same(r.self):
			return n > 0 && elected.known() && !elected.same(m) && r.able(m)
		case r.able(m) && !m.same(elected):
			n--
		}
	}
	return false
}

// left reports whether a member will not host any more.
func (r *ring) left(m Member) bool { return slices.ContainsFunc(r.departed, m.same) }
