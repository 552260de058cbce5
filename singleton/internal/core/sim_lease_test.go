package core_test

import (
	"time"

	"github.com/concord-go/concord/singleton/internal/core"
)

const (
	pollEvery  = 500 * time.Millisecond
	renewEvery = 3 * time.Second
)

// lease is a service that keeps its promises: grants that cannot be renewed are told to be over before
// anybody else gets one, and late answers come late.
type lease struct {
	holder  *node
	life    uint64 // of the holder
	token   uint64
	high    uint64
	renewed time.Duration
	lost    bool // the holder was told
	away    map[*node]time.Duration
	tries   map[*node]uint64 // attempt under way
}

func (l *lease) unreachable(n *node, until time.Duration) {
	if l.away == nil {
		l.away, l.tries = map[*node]time.Duration{}, map[*node]uint64{}
	}
	l.away[n] = until
}

func (l *lease) reach(w *world, n *node) bool { return l.away[n] <= w.now }

func (l *lease) free() { l.holder = nil }

func (l *lease) holds(n *node, token uint64) bool {
	return l.holder == n && l.life == n.life && l.token == token
}

// valid is Check: work may start.
func (l *lease) valid(w *world, n *node, token uint64) bool {
	return l.holds(n, token) && !l.lost && w.now < l.renewed+stopBy
}

// begin tries until it is granted or cancelled.
func (l *lease) begin(w *world, n *node, attempt uint64) {
	l.unreachable(n, l.away[n])
	if l.tries[n] != 0 && l.tries[n]>>32 == n.life {
		w.breaks("node %d: attempt %d overlaps another one", n.i, attempt)
	}
	l.tries[n] = n.life<<32 | attempt
	w.after(w.delay(), n.living(func() { l.try(w, n, attempt) }))
}

func (l *lease) trying(n *node, attempt uint64) bool { return l.tries[n] == n.life<<32|attempt }

func (l *lease) try(w *world, n *node, attempt uint64) {
	if !l.trying(n, attempt) {
		return
	}
	if l.holder != nil && w.now >= l.renewed+ttl {
		l.holder = nil
	}
	if !l.reach(w, n) || l.holder != nil {
		w.after(pollEvery, n.living(func() { l.try(w, n, attempt) }))
		return
	}
	l.tries[n] = 0
	l.high++
	token := l.high
	l.holder, l.life, l.token, l.renewed, l.lost = n, n.life, token, w.now, false
	l.renew(w, n, token)
	late := w.delay()
	if w.chance(0.05) {
		late = w.between(0, 15*time.Second)
	}
	w.after(late, n.living(func() {
		n.step(core.Held{Attempt: attempt, Token: token})
		if !l.holds(n, token) || l.lost {
			n.step(core.Lost{Token: token})
		}
	}))
}

// renew keeps the tenure while the holder reaches the store, and tells it in time if it does not.
func (l *lease) renew(w *world, n *node, token uint64) {
	w.after(renewEvery, func() {
		switch {
		case !l.holds(n, token) || l.lost:
		case l.reach(w, n):
			l.renewed = w.now
			l.renew(w, n, token)
		case w.now >= l.renewed+stopBy-renewEvery:
			w.after(l.renewed+stopBy-w.now, func() {
				if l.holds(n, token) {
					l.lost = true
					n.step(core.Lost{Token: token})
				}
			})
		default:
			l.renew(w, n, token)
		}
	})
}

// cancel ends an attempt, unless it has been granted and the answer is on its way.
func (l *lease) cancel(w *world, n *node, attempt uint64) {
	if !l.trying(n, attempt) {
		return
	}
	l.tries[n] = 0
	w.after(w.delay(), n.living(func() { n.step(core.Failed{Attempt: attempt}) }))
}

// release is tried until the store is reached or the tenure has expired; the answer does not wait longer
// than a hand-over.
func (l *lease) release(w *world, n *node, token uint64) {
	if w.opt.overlookGrant && n.ran != token {
		n.step(core.Released{Token: token, Certain: true})
		return
	}
	if w.alive[n] != 0 && l.holds(n, token) && !w.opt.earlyRelease {
		w.breaks("node %d releases %d while its instance lives", n.i, token)
	}
	begun := w.now
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
			w.after(w.delay(), n.living(func() { answer(true) }))
		default:
			if w.now >= begun+handOver {
				answer(false)
			}
			w.after(pollEvery, n.living(try))
		}
	}
	w.after(w.delay(), n.living(try))
}
