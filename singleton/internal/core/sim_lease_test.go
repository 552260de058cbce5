package core_test

import (
	"time"

	"github.com/concord-go/concord/singleton/internal/core"
)

const (
	pollEvery  = 500 * time.Millisecond
	attemptFor = 3 * time.Second
	renewEvery = 3 * time.Second
)

// lease is a lease service that keeps its promises: it reports a grant that cannot be renewed as
// over before another node gets one, and late answers arrive late.
type lease struct {
	holder      *node
	incarnation uint64 // of the holder
	token       uint64
	high        uint64
	renewed     time.Duration
	lost        bool // the loss was reported to the holder
	away        map[*node]time.Duration
	tries       map[*node]uint64 // pending attempt
	taken       map[*node]bool   // its last probe found the lease held
}

func (l *lease) unreachable(n *node, until time.Duration) {
	if l.away == nil {
		l.away, l.tries, l.taken = map[*node]time.Duration{}, map[*node]uint64{}, map[*node]bool{}
	}
	l.away[n] = until
}

func (l *lease) reach(w *world, n *node) bool { return l.away[n] <= w.Elapsed() }

func (l *lease) free() { l.holder = nil }

func (l *lease) holds(n *node, token uint64) bool {
	return l.holder == n && l.incarnation == n.incarnation && l.token == token
}

// valid is Tenure.Check: it reports whether work may start.
func (l *lease) valid(w *world, n *node, token uint64) bool {
	return l.holds(n, token) && !l.lost && w.Elapsed() < l.renewed+stopBy
}

// begin tries until the attempt is granted or cancelled.
func (l *lease) begin(w *world, n *node, attempt uint64) {
	l.unreachable(n, l.away[n])
	if l.tries[n] != 0 && l.tries[n]>>32 == n.incarnation {
		w.Fail("member %d: attempt %d overlaps another one", n.i, attempt)
	}
	l.tries[n], l.taken[n] = n.incarnation<<32|attempt, false
	w.After(w.delay("ask"), n.living(func() { l.try(w, n, attempt) }))
	w.After(attemptFor, n.living(func() {
		if l.trying(n, attempt) {
			l.tries[n] = 0
			n.step(core.Failed{Attempt: attempt, Taken: l.taken[n]})
		}
	}))
}

// probe reads the lease.
func (l *lease) probe(w *world, n *node, number uint64) {
	w.After(w.delay("probe"), n.living(func() {
		if !l.reach(w, n) {
			w.After(time.Second, n.living(func() { n.step(core.Probed{Probe: number}) }))
			return
		}
		taken := l.holder != nil && !(l.holder == n && l.incarnation == n.incarnation)
		n.step(core.Probed{Probe: number, Reached: true, Taken: taken, Token: l.token})
	}))
}

func (l *lease) trying(n *node, attempt uint64) bool {
	return l.tries[n] == n.incarnation<<32|attempt
}

func (l *lease) try(w *world, n *node, attempt uint64) {
	if !l.trying(n, attempt) {
		return
	}
	if l.holder != nil && w.Elapsed() >= l.renewed+ttl {
		l.holder = nil
	}
	if l.taken[n] = l.reach(w, n) && l.holder != nil; l.taken[n] || !l.reach(w, n) {
		w.After(pollEvery, n.living(func() { l.try(w, n, attempt) }))
		return
	}
	l.tries[n] = 0
	l.high++
	token := l.high
	l.holder, l.incarnation, l.token = n, n.incarnation, token
	l.renewed, l.lost = w.Elapsed(), false
	l.renew(w, n, token)
	late := w.delay("grant")
	if !w.opt.prompt && w.Chance("grant-late", 0.2) {
		late = w.Span("grant-after", 0, 15*time.Second)
	}
	w.After(late, n.living(func() {
		n.step(core.Held{Attempt: attempt, Token: token})
		if !l.holds(n, token) || l.lost {
			n.step(core.Lost{Token: token})
		}
	}))
}

// renew keeps the tenure while the holder reaches the store, and reports a loss in time otherwise.
func (l *lease) renew(w *world, n *node, token uint64) {
	w.After(renewEvery, func() {
		switch {
		case !l.holds(n, token) || l.lost:
		case l.reach(w, n):
			l.renewed = w.Elapsed()
			l.renew(w, n, token)
		case w.Elapsed() >= l.renewed+stopBy-renewEvery:
			w.After(l.renewed+stopBy-w.Elapsed(), func() {
				if l.holds(n, token) {
					l.lost = true
					n.step(core.Lost{Token: token, Silent: true})
				}
			})
		default:
			l.renew(w, n, token)
		}
	})
}

// cancel ends an attempt, unless it has been granted and the answer is in flight.
func (l *lease) cancel(w *world, n *node, attempt uint64) {
	if !l.trying(n, attempt) {
		return
	}
	l.tries[n] = 0
	w.After(w.delay("cancel"), n.living(func() { n.step(core.Failed{Attempt: attempt}) }))
}

// release is tried until the store is reached or the tenure has expired; its answer waits no longer
// than a hand-over.
func (l *lease) release(w *world, n *node, token uint64) {
	if w.opt.overlookGrant && n.ran != token {
		n.step(core.Released{Token: token, Certain: true})
		return
	}
	if w.alive[n] != 0 && l.holds(n, token) && !w.opt.earlyRelease {
		w.Fail("member %d releases %d while its instance lives", n.i, token)
	}
	begun := w.Elapsed()
	answered := false
	answer := func(certain bool) {
		if !answered {
			answered = true
			n.step(core.Released{Token: token, Certain: certain})
		}
	}
	var try func()
	try = func() {
		switch {
		case !l.holds(n, token):
			answer(true)
		case l.reach(w, n):
			l.free()
			w.After(w.delay("released"), n.living(func() { answer(true) }))
		default:
			if w.Elapsed() >= begun+handOver {
				answer(false)
			}
			w.After(pollEvery, n.living(try))
		}
	}
	w.After(w.delay("release"), n.living(try))
}
