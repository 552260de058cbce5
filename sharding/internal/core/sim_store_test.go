package core_test

import (
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// store is the lease store. It is linearizable, and its calls may be lost in both directions. A
// lease is held through a session, and is free when the session has not been renewed for its TTL.
type store struct {
	w        *world
	sessions map[session]time.Duration // last renewed, true time
	leases   map[int]*lease
	away     []time.Duration // until when each member does not reach the store
}

type session struct {
	member core.Member
	gen    int
}

type lease struct {
	holder  session
	held    bool
	token   uint64
	attempt uint64
	void    map[session]uint64 // attempts up to this are void: the release has overtaken them
}

const (
	ttl       = 4000 * ms
	margin    = 200 * ms
	drain     = 600 * ms
	renewal   = 1000 * ms
	operation = 400 * ms
	coordName = -1
)

func (s *store) lease(name int) *lease {
	l := s.leases[name]
	if l == nil {
		l = &lease{void: map[session]uint64{}}
		s.leases[name] = l
	}
	return l
}

// valid reports whether no other session can hold the leases of this one.
func (s *store) valid(h session) bool {
	at, ok := s.sessions[h]
	return ok && s.w.Elapsed() < at+ttl
}

func (s *store) holder(name int) (session, bool) {
	l := s.lease(name)
	return l.holder, l.held && s.valid(l.holder)
}

// call sends an operation to the store and returns its answer. It calls done once, with false if
// the result is unknown.
func (n *node) call(op func() any, done func(answer any, ok bool)) {
	w, inc, ended := n.w, n.inc, false
	end := func(a any, ok bool) {
		if !n.up || n.inc != inc {
			return
		}
		n.run(func() {
			if !ended {
				ended = true
				done(a, ok)
			}
		})
	}
	w.After(operation, func() { end(nil, false) })
	if w.store.away[n.i] > w.Elapsed() {
		return
	}
	there, back, most := 5*ms, 5*ms, 4
	if w.opt.planned {
		most = 2
	}
	if w.acting && w.Chance("store-fault", w.p.store) {
		switch w.Number("store-fault-kind", 1, most) {
		case 1:
			back += 60 * ms
		case 2:
			if !w.opt.planned {
				return
			}
			there += 60 * ms
		case 3:
			back = -1
		case 4: // it arrives when its caller has given up
			there += 2 * operation
		}
	}
	w.After(there, func() {
		a := op()
		if back >= 0 {
			w.After(back, func() { end(a, true) })
		}
	})
}

func (s *store) renew(h session) { s.sessions[h] = s.w.Elapsed() }

type granted struct {
	token uint64
	ok    bool
}

func (s *store) acquire(name int, h session, attempt uint64) granted {
	l := s.lease(name)
	switch {
	case attempt <= l.void[h]:
		return granted{}
	case l.held && l.holder == h: // asked again: the same tenure
		l.attempt = max(l.attempt, attempt)
		return granted{l.token, true}
	case l.held && s.valid(l.holder) && !(l.holder.member == h.member && l.holder.gen < h.gen):
		return granted{}
	}
	if name != coordName && l.token > 0 && l.holder.member != h.member {
		s.w.stat.moved++
	}
	l.holder, l.held, l.attempt = h, true, attempt
	l.token++
	s.w.stat.grants++
	return granted{l.token, true}
}

func (s *store) release(name int, h session, attempt uint64) {
	l := s.lease(name)
	l.void[h] = max(l.void[h], attempt)
	if l.held && l.holder == h && l.attempt <= attempt {
		l.held = false
	}
}
