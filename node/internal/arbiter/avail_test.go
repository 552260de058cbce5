package arbiter_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/node/internal/arbiter"
)

// bound is the time in which the sides decide once nothing changes: leases of members that have
// crashed, or do not reach the store, end first.
func (w *world) bound() time.Duration {
	return 2*ttl + 2*ttl/10 + w.cfg.Decided() + w.detection
}

// side is what is true of one side of a partition.
type side struct {
	members, open []*incarnation
	leader        *incarnation
}

// reaches reports whether a member of the side reaches the store.
func (s *side) reaches() bool {
	return slices.ContainsFunc(s.members, func(l *incarnation) bool { return l.store })
}

func (w *world) sides() map[int]*side {
	all := map[int]*side{}
	for _, l := range w.living() {
		s := all[l.side]
		if s == nil {
			s = &side{}
			all[l.side] = s
		}
		s.members = append(s.members, l)
		if l.gate.Open {
			s.open = append(s.open, l)
		}
		if s.leader == nil || l.born < s.leader.born {
			s.leader = l
		}
	}
	return all
}

// majorityServes checks that every member of a side with a majority has an open gate, once views
// have matched the sides for a moment, whatever the store does. A side of which nobody knows how
// many members there are asks the store first: if the leader does not reach it, another member
// does, unless one member is enough to begin.
func (w *world) majorityServes() error {
	for _, s := range w.sides() {
		_, known := s.leader.core.Counts()
		since := w.Elapsed() - w.moved - w.detection
		if known == 0 {
			since = w.Elapsed() - w.changed - w.bound()
		}
		if 2*len(s.members) <= len(w.nodes) || since <= w.cfg.Lapse() ||
			known == 0 && (w.cfg.Members == 1 && !s.leader.store || !s.reaches()) {
			continue
		}
		if w.disputed(s.leader) {
			continue
		}
		for _, l := range s.members {
			_, known := l.core.Counts()
			if strings.Contains(l.gate.Why, "different stores") &&
				w.Elapsed()-l.gateAt <= w.cfg.Lapse() {
				continue // its leader has lost the lease, and has not said so yet
			}
			if !l.gate.Open && !l.left && known > 0 {
				return fmt.Errorf("%s is on the side of %d of %d members and does not host: %v",
					l.id, len(s.members), len(w.nodes), l.core)
			}
		}
	}
	return nil
}

// disputed reports whether a side other than that of l counts itself as the majority, and has the
// lease: members have left it in order, or were missing for a minute, so it counts fewer of them. A
// holder that has just seen that it is on the side of l gives the lease up when l has spoken, and l
// acquires it with its next attempt.
func (w *world) disputed(l *incarnation) bool {
	h := w.leases[arbiter.Majority].holder
	switch {
	case h == nil:
		return w.Elapsed()-w.released <= w.cfg.Lapse()
	case h.over || h == l:
		return false
	case h.side == l.side:
		return w.Elapsed()-h.looked <= w.cfg.Lapse()
	}
	here, all := h.core.Counts()
	return 2*here > all
}

// oneSide checks that at most one side has an open gate once nothing has changed for long enough.
// While the store does not answer a majority, another side may host when the leases of the majority
// have ended.
func (w *world) oneSide() error {
	if w.Elapsed()-w.changed <= w.bound() || w.Loss > 0 && !w.IsCalm() {
		return nil
	}
	var open *incarnation
	for _, s := range w.sides() {
		if len(s.open) == 0 || !s.leader.store {
			continue
		}
		if open != nil {
			return fmt.Errorf("%s (%v) and %s (%v) are open on two sides", open.id, open.core,
				s.open[0].id, s.open[0].core)
		}
		open = s.open[0]
	}
	return nil
}

// noFlaps checks that no gate changes once nothing else has changed for long enough.
func (w *world) noFlaps() error {
	for _, l := range w.living() {
		if l.gateAt > w.changed+w.bound()+time.Second && (w.Loss == 0 || w.IsCalm()) {
			return fmt.Errorf("%s: gate %v, although nothing has changed for %v: %v", l.id,
				l.gate, l.gateAt-w.changed, l.core)
		}
	}
	return nil
}

// mayOpen checks a member whose gate opens.
func (w *world) mayOpen(l *incarnation) {
	if _, known := l.core.Counts(); l.view.Oldest == l.id && known == 0 && !l.begun {
		w.Fail("%s hosts (%v), and has not seen as many members as begin a cluster", l.id, l.core)
	}
	w.mayBegin(l)
	w.mayGoOn(l)
}

// mayBegin checks a member that has just started and sees only itself: another side that hosts
// without a majority goes on.
func (w *world) mayBegin(l *incarnation) {
	h := w.leases[arbiter.Rest].holder
	if l.held[arbiter.Majority] != 0 && h != nil && !h.over && h != l && h.gate.Open &&
		h.held[arbiter.Rest] != 0 && len(l.view.Members) == 1 {
		w.Fail("%s begins to host (%v) beside %s (%v)", l.id, l.core, h.id, h.core)
	}
}

// mayGoOn checks a member whose gate opens after an outage of the store that both sides have seen
// while they were apart: a side that goes on with a majority may be the later one to have a
// session, and the other side does not host before that.
func (w *world) mayGoOn(l *incarnation) {
	back := l.w.sides()[l.side].leader.back
	contest := w.parted + w.detection + 2*w.cfg.Operation() // it has begun, and asked the store
	if l.held[arbiter.Rest] == 0 || back < contest || w.Elapsed() > back+ttl ||
		w.Elapsed() < w.moved+w.detection+w.cfg.Lapse() {
		return
	}
	for side, s := range w.sides() {
		_, known := s.leader.core.Counts()
		if side != l.side && 2*len(s.members) > len(w.nodes) && len(s.open) == len(s.members) &&
			s.leader.store && s.leader.back <= back && known > 0 && !w.disputed(s.leader) {
			w.Fail("%s begins to host (%v) beside the majority of %s (%v)", l.id, l.core,
				s.leader.id, s.leader.core)
		}
	}
}

// mayServe reports whether the leader of a side has seen as many members as begin a cluster, or a
// member knows how many there are.
func (w *world) mayServe() bool {
	for _, s := range w.sides() {
		if s.leader.begun {
			return true
		}
	}
	return w.began()
}

// hosted reports whether all members of one side have open gates, and no others do; before any side
// has begun, whether all are shut.
func (w *world) hosted() bool {
	hosts := 0
	for _, s := range w.sides() {
		switch {
		case len(s.open) == len(s.members):
			hosts++
		case len(s.open) > 0:
			return false
		}
		if 2*len(s.members) > len(w.nodes) && len(s.open) == 0 && !w.disputed(s.leader) {
			return false
		}
	}
	return hosts == 1 || hosts == 0 && !w.mayServe()
}

// began reports whether a member knows how many members there are.
func (w *world) began() bool {
	return slices.ContainsFunc(w.living(), func(l *incarnation) bool {
		_, all := l.core.Counts()
		return all > 0
	})
}

// majorities returns how many sides count themselves as a majority.
func (w *world) majorities() (n int) {
	for _, s := range w.sides() {
		if here, all := s.leader.core.Counts(); 2*here > all && all > 0 {
			n++
		}
	}
	return n
}

// open reports whether every gate is open.
func (w *world) open() bool {
	return !slices.ContainsFunc(w.living(), func(l *incarnation) bool { return !l.gate.Open })
}

func (w *world) healed() bool {
	holders := 0
	for _, l := range w.living() {
		if !l.gate.Open || l.held[arbiter.Rest] != 0 {
			return false
		}
		if l.held[arbiter.Majority] != 0 {
			holders++
		}
	}
	return holders <= 1
}
