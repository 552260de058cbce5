package core

import "time"

// patience is the number of intervals after which a silent path is replaced by another.
const patience = 2

// hasty divides the interval for the first questions of a search. A member that joins asks a member
// that does not list it yet and ignores the question.
const hasty = 32

// Route finds the host for the messages of one member, and notices when it has moved.
//
// It asks along the path of its messages. When a host pauses, it asks that host, which passes the
// question on behind the messages. So when the next host answers, it has the messages, and messages
// sent to it directly come later. Only if that path does not answer, Route asks the member that
// should host: the one that the managers elect.
type Route struct {
	interval time.Duration
	now      time.Time
	out      []Effect
	ring     ring

	round uint64
	host  Member // zero: not known
	token uint64
	heard time.Time // last time from the host
	told  bool      // that was an announcement: the next one comes without a question

	last  uint64 // token of the last host
	doubt bool   // messages sent to it may be lost: it is silent, or has lost its lease

	via    Member // the path; zero: through the elected member
	asked  time.Time
	gap    time.Duration // until the next question to the elected member
	to     Member        // the member asked last
	since  time.Time     // when it was asked first
	turn   int           // of the members to ask
	silent int           // unanswered questions on this path
}

// NewRoute returns a route that knows no member. It asks every interval, unless the announcements
// of the host show that it still hosts. The first questions of a search through the elected member
// follow each other sooner: after a 32nd of the interval, a 16th, and so on. An announcement is
// valid for ten intervals.
func NewRoute(interval time.Duration) *Route {
	return &Route{interval: interval, ring: ring{valid: 10 * interval}}
}

// Host returns the place of the instance; ok is false if it is not known.
func (r *Route) Host() (m Member, token uint64, ok bool) { return r.host, r.token, r.host.known() }

// Hopeful reports whether there is a member to ask. One that passes messages on to the next host is
// not asked when every member has left, since there is no next host.
func (r *Route) Hopeful() bool {
	return !r.ring.removed && r.path().known() && (r.host.known() || r.ring.stays())
}

// NextWake returns when a Wake is wanted; zero if not at all.
func (r *Route) NextWake() time.Time {
	if !r.Hopeful() {
		return time.Time{}
	}
	return r.asked.Add(r.pause())
}

// pause returns the time between the last question and the next one.
func (r *Route) pause() time.Duration {
	switch {
	case r.host.known() && r.told:
		return 3 * r.interval / 2
	case r.host.known() || r.via.known():
		return r.interval
	}
	return min(r.gap, r.interval)
}

// Step handles one event at time now and returns its effects, in order. The caller owns the slice.
func (r *Route) Step(now time.Time, ev Event) []Effect {
	r.now, r.ring.now, r.out = now, now, nil
	switch ev := ev.(type) {
	case Announcement:
		r.onAnnouncement(ev)
	case View:
		r.onView(ev)
	case Leaving:
		r.onLeaving(ev)
	case Host:
		r.onHost(ev)
	case Paused:
		if r.host.known() && r.host.same(ev.From) && ev.Token >= r.token {
			r.doubt = ev.Lost
			r.search(ev.From)
		}
	case Wake:
		r.onWake()
	}
	return r.out
}

func (r *Route) emit(e Effect) { r.out = append(r.out, e) }

// path returns the member to ask.
func (r *Route) path() Member {
	switch {
	case r.host.known():
		return r.host
	case r.via.known():
		return r.via
	}
	return r.candidate()
}

// candidate returns the member to ask when no path is known: the one that should host, unless it
// has announced nothing yet and another one announces that it hosts. If it does not answer, the
// others have their turn.
func (r *Route) candidate() Member {
	e := r.ring.elect()
	var hosting, rest []Member
	for _, m := range r.ring.hosts {
		switch {
		case !r.ring.able(m) || m.same(e):
		case r.ring.of(m).token != 0:
			hosting = append(hosting, m)
		default:
			rest = append(rest, m)
		}
	}
	all := append([]Member{e}, hosting...)
	if !r.ring.spoke(e) {
		all = append(hosting, e)
	}
	all = append(all, rest...)
	return all[r.turn%len(all)]
}

// onAnnouncement handles an announcement: of the host, or of a member that should host.
func (r *Route) onAnnouncement(ev Announcement) {
	before := r.path()
	r.ring.onAnnouncement(ev)
	switch {
	case r.host.known() && r.host.same(ev.From):
		if r.told = ev.Token == r.token; r.told {
			r.heard, r.asked = r.now, r.now
		}
	case !r.host.known() && !r.via.known() && !before.same(r.path()):
		r.gap, r.turn = r.interval/hasty, 0
		r.ask()
	}
}

func (r *Route) ask() {
	r.asked = r.now
	if to := r.path(); !to.same(r.to) {
		r.to, r.since = to, r.now
	}
	if r.to.known() && !r.ring.removed {
		r.emit(Ask{r.to, r.round})
	}
}

// search forgets the host and asks again: through via, or through the elected member.
func (r *Route) search(via Member) {
	if r.host.known() {
		r.emit(Hidden{})
	}
	r.host, r.token, r.via, r.silent, r.told = Member{}, 0, via, 0, false
	r.gap = r.interval / hasty
	r.round++
	r.turn, r.since = 0, r.now
	r.ask()
}

func (r *Route) onView(v View) {
	before, left := r.ring.elect(), r.ring.left(r.via)
	v.Self = Member{} // the manager here announces as the others do
	r.ring.onView(v)
	switch {
	case r.ring.removed:
		if r.host.known() {
			r.emit(Hidden{})
		}
		r.host = Member{}
	case r.host.known() && !r.ring.listed(r.host), r.via.known() && !r.ring.listed(r.via):
		if !left { // a member that left in good order has passed on its messages
			r.orphan()
		}
		r.search(Member{})
	case r.round == 0:
		r.search(Member{})
	case !before.same(r.ring.elect()):
		r.gap = r.interval / hasty
		r.ask()
	}
}

func (r *Route) onLeaving(ev Leaving) {
	switch news := r.ring.onLeaving(ev.Member); {
	case !news:
	case r.host.known() && r.host.same(ev.Member):
		r.search(ev.Member)
	case !r.host.known() && !r.via.known() && r.to.same(ev.Member):
		r.search(Member{})
	}
}

// onHost handles an answer to the present search. A tenure with a smaller token is over, whatever
// its host believes.
func (r *Route) onHost(ev Host) {
	if ev.Round != r.round || r.ring.removed || !r.ring.listed(ev.From) || r.host.known() &&
		ev.Token < r.token {
		return
	}
	news := !r.host.same(ev.From) || r.token != ev.Token
	if ev.Token > r.last && (r.doubt || r.host.known()) {
		r.orphan()
	}
	r.last, r.doubt = ev.Token, false
	r.host, r.token, r.heard, r.told = ev.From, ev.Token, r.now, false
	r.via, r.silent = Member{}, 0
	if news {
		r.emit(Found{r.host, r.token})
	}
}

func (r *Route) onWake() {
	if r.now.Sub(r.asked) < r.pause() {
		return
	}
	switch r.silent++; {
	case r.host.known() && r.now.Sub(r.heard) > patience*r.interval, r.via.known() &&
		r.silent >= patience:
		r.doubt = true
		r.search(Member{})
	default:
		r.gap = min(2*r.gap, r.interval)
		if !r.host.known() && !r.via.known() && r.now.Sub(r.since) >= patience*r.interval {
			r.turn, r.since = r.turn+1, r.now
		}
		r.ask()
	}
}

// orphan reports that the last host will not answer any more.
func (r *Route) orphan() {
	if r.last != 0 {
		r.emit(Orphaned{r.last})
	}
	r.last, r.doubt = 0, false
}
