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
	departed []Member // members that will not host any more
	absent   []absence
	abstains bool // self abstains
	removed  bool
}

// absence is the last announcement of a member on whether it hosts.
type absence struct {
	member Member
	seq    uint64
	until  time.Time // zero: it may

	failing bool // it hosts, but instances fail there
}

// longestAbsence bounds how long an announcement is valid.
const longestAbsence = time.Minute

func (r *ring) onView(v View) {
	r.self, r.hosts = v.Self, slices.Clone(v.Hosts)
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
		a.seq, a.until, a.failing = ev.Seq, r.now.Add(min(ev.For, longestAbsence)), ev.Failing
	}
}

// absentNow reports whether a member abstains.
func (r *ring) absentNow(m Member) bool {
	if m.same(r.self) {
		return r.abstains
	}
	return slices.ContainsFunc(r.absent, func(a absence) bool {
		return a.member.same(m) && !a.failing && r.now.Before(a.until)
	})
}

// failing reports whether another member hosts and instances fail there.
func (r *ring) failing() bool {
	return slices.ContainsFunc(r.absent, func(a absence) bool { return a.failing && r.now.Before(a.until) })
}

// due returns when the next abstention expires; zero if there is none.
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

// oldest returns the member that should host; the zero Member if none is known.
func (r *ring) oldest() Member {
	for _, m := range r.hosts {
		if r.able(m) {
			return m
		}
	}
	return Member{}
}

// heir reports whether this member is one of the n that come after the oldest member that may host.
func (r *ring) heir(n int) bool {
	older := 0
	for _, m := range r.hosts {
		switch {
		case m.same(r.self):
			return older > 0 && older <= n && r.able(m)
		case r.able(m):
			older++
		}
	}
	return false
}

// left reports whether a member will not host any more.
func (r *ring) left(m Member) bool { return slices.ContainsFunc(r.departed, m.same) }
