package core

import "slices"

// Member is one incarnation of one member.
type Member struct {
	ID          string
	Incarnation uint64
	Address     string
}

func (m Member) same(o Member) bool { return m.ID == o.ID && m.Incarnation == o.Incarnation }

func (m Member) known() bool { return m.ID != "" }

// ring is who may host.
//
// Invariant: departed ⊆ hosts, so it is as bounded as the view.
type ring struct {
	self     Member
	hosts    []Member // oldest first
	departed []Member // that will not host any more
	removed  bool
}

func (r *ring) onView(v View) {
	r.self, r.hosts = v.Self, slices.Clone(v.Hosts)
	r.removed = r.removed || v.Removed
	r.departed = slices.DeleteFunc(r.departed, func(m Member) bool { return !r.listed(m) })
}

// onLeaving reports whether that is news.
func (r *ring) onLeaving(m Member) bool {
	if !r.listed(m) || slices.ContainsFunc(r.departed, m.same) {
		return false
	}
	r.departed = append(r.departed, m)
	return true
}

func (r *ring) listed(m Member) bool { return slices.ContainsFunc(r.hosts, m.same) }

// oldest returns who should host; the zero Member if nobody is known.
func (r *ring) oldest() Member {
	for _, m := range r.hosts {
		if !slices.ContainsFunc(r.departed, m.same) {
			return m
		}
	}
	return Member{}
}
