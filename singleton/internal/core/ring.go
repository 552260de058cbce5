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
// Invariant: departed ⊆ hosts, and said has one element for each of hosts, so they are as bounded
// as the view.
type ring struct {
	valid    time.Duration // of an announcement
	now      time.Time
	self     Member
	hosts    []Member // oldest first
	prefers  []Member // best first, by this member's preference; nil: it has none
	departed []Member // members that will not host any more
	said     []announced
	declines bool // self declines
	claims   bool // self claims the instance
	removed  bool
}

// announced is the last announcement of a member. A member that announces nothing may run a version
// of the application without this singleton, so it counts as able to host only for a while after it
// is listed.
type announced struct {
	member Member
	seq    uint64
	at     time.Time // of the last announcement, or when the member was listed
	spoke  bool      // it has announced something

	declines        bool // it does not host for now
	failing, claims bool // it hosts, but instances fail there; it claims the instance
	token           uint64

	shunned time.Time // until then this member does not count on it; see doubt
	shuns   int       // how often in a row
}

// onView handles a view, and reports whether it lists a member that was not listed before.
func (r *ring) onView(v View) (news bool) {
	r.self, r.hosts, r.prefers = v.Self, slices.Clone(v.Hosts), slices.Clone(v.Preferred)
	r.removed = r.removed || v.Removed
	r.departed = slices.DeleteFunc(r.departed, func(m Member) bool { return !r.listed(m) })
	said := make([]announced, 0, len(r.hosts))
	for _, m := range r.hosts {
		if a := r.of(m); a != nil {
			said = append(said, *a)
		} else {
			said, news = append(said, announced{member: m, at: r.now}), true
		}
	}
	r.said = said
	return news
}

// of returns what a member has announced; nil if the member is not listed.
func (r *ring) of(m Member) *announced {
	i := slices.IndexFunc(r.said, func(a announced) bool { return a.member.same(m) })
	if i < 0 {
		return nil
	}
	return &r.said[i]
}

// onAnnouncement handles an announcement of another member. A late one only shows that the member
// runs.
func (r *ring) onAnnouncement(ev Announcement) {
	a := r.of(ev.From)
	if a == nil || ev.From.same(r.self) {
		return
	}
	a.at, a.spoke = r.now, true
	if ev.Seq >= a.seq {
		a.seq, a.failing, a.claims = ev.Seq, ev.Failing, ev.Claims
		a.declines = ev.For > 0 && !ev.Failing && !ev.Claims
		a.token = ev.Token
	}
}

// hosted reports whether another member has announced that it has the instance.
func (r *ring) hosted() bool {
	return slices.ContainsFunc(r.said, func(a announced) bool { return a.token != 0 })
}

// present reports whether the announcement of a member is valid.
func (r *ring) present(a announced) bool { return r.now.Before(a.at.Add(r.valid)) }

// spoke reports whether a member has announced that it runs.
func (r *ring) spoke(m Member) bool {
	a := r.of(m)
	return a != nil && a.spoke
}

// claimed reports whether a member has claimed the instance. Its claim counts while it is able to
// host.
func (r *ring) claimed(m Member) bool {
	if m.same(r.self) {
		return r.claims
	}
	a := r.of(m)
	return a != nil && a.claims
}

// failing reports whether another member hosts and instances fail there.
func (r *ring) failing() bool {
	return slices.ContainsFunc(r.said, func(a announced) bool { return a.failing && r.present(a) })
}

// due returns when the next announcement expires; zero if there is none.
func (r *ring) due() (at time.Time) {
	for _, a := range r.said {
		if r.present(a) && !a.member.same(r.self) {
			at = earliest(at, a.at.Add(r.valid))
		}
		if r.now.Before(a.shunned) {
			at = earliest(at, a.shunned)
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
func (r *ring) able(m Member) bool {
	if m.same(r.self) {
		return !r.declines && !r.left(m)
	}
	a := r.of(m)
	return a != nil && r.present(*a) && !a.declines && !r.now.Before(a.shunned) && !r.left(m)
}

// onLeaving records that a member will not host any more, and reports whether that is new.
func (r *ring) onLeaving(m Member) bool {
	if !r.listed(m) || r.left(m) {
		return false
	}
	r.departed = append(r.departed, m)
	return true
}

// stays reports whether another member may host, now or later.
func (r *ring) stays() bool {
	return slices.ContainsFunc(r.hosts, func(m Member) bool {
		return !m.same(r.self) && !r.left(m)
	})
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

// older reports whether a member that may host, now or later, is older than this one.
func (r *ring) older() bool {
	for _, m := range r.hosts {
		if !r.left(m) {
			return !m.same(r.self)
		}
	}
	return false
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

// standby reports whether this member is one of the first n in the given order, of the members that
// may host, without the elected one.
func (r *ring) standby(order []Member, n int) bool {
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
