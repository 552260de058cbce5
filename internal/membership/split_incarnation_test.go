package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

// process is one incarnation of the process at a place: a core with its provider.
type process struct {
	p      *place
	w      *world
	id     string
	core   *core
	frozen bool
	held   []func() // work deferred until it thaws
	asked  time.Time
	wake   int // number of the requested wake

	told   map[string]int        // place by id, as published last
	banned map[string]bool       // dropped ids
	missed map[int]int           // number of rounds in which a place was silent
	blind  map[int]time.Duration // places that the provider cannot see, and until when
	permit *received             // the last permit received
}

func (p *place) start() {
	if p.incarnation != nil {
		return
	}
	p.down = false
	p.was++
	p.w.incarnations++
	l := &process{
		p: p, w: p.w, id: fmt.Sprintf("m%03d", p.w.incarnations), told: map[string]int{},
		banned: map[string]bool{},
		missed: map[int]int{}, blind: map[int]time.Duration{},
	}
	t := p.w.tuning
	for _, at := range p.ends {
		if p.w.Elapsed()-at < time.Hour {
			t.Incarnations++
		}
	}
	l.core = newCore(t.apply(defaultSettings()), "", p.w.addressOf(p.i), l.id,
		uint64(p.w.incarnations), p.key())
	p.incarnation, p.last = l, ending{}
	p.w.Note("%s starts at %d", l.id, p.i)
	p.w.After(p.w.Span("look", 0, p.w.round), l.look)
	if p.w.store != nil {
		p.w.store.keep(l)
	}
}

func (p *place) startIn(d time.Duration) { p.w.After(d, p.start) }

// key returns the key of the present process.
func (p *place) key() []byte { return fmt.Append(nil, p.i, p.pid) }

// crash ends the incarnation abruptly, and the process.
func (p *place) crash() {
	p.pid++
	p.incarnation, p.down = nil, true
}

// leave ends the incarnation gracefully.
func (p *place) leave() {
	if l := p.incarnation; l != nil && !l.frozen {
		if p.w.store != nil {
			p.w.store.forget(l.id)
		}
		p.crash()
	}
}

// freeze suspends the process.
func (p *place) freeze(d time.Duration) {
	l := p.incarnation
	if l == nil || l.frozen {
		return
	}
	l.frozen = true
	p.w.After(d, func() {
		held := l.held
		l.frozen, l.held = false, nil
		for _, f := range held {
			l.do(f)
		}
	})
}

// do runs f if the incarnation is still running; while it is frozen, f is deferred.
func (l *process) do(f func()) {
	switch {
	case l.p.incarnation != l:
	case l.frozen:
		l.held = append(l.held, f)
	default:
		f()
	}
}

func (l *process) String() string {
	s := l.id
	if l.frozen {
		s += " frozen"
	}
	view := ""
	if v := l.core.view; v != nil {
		for _, m := range v.Members {
			view += fmt.Sprintf(" %s/%d/%d", m.ID, m.Incarnation, m.Stamp)
		}
	}
	return fmt.Sprintf("%s at %d lists %v, sees%s", s, l.p.i, slices.Sorted(maps.Keys(l.told)),
		view)
}

// look is one round of the provider.
func (l *process) look() {
	if l.p.incarnation != l {
		return
	}
	l.w.After(l.w.round, func() { l.do(l.look) })
	if l.frozen {
		return
	}
	raw := map[string]int{}
	if s := l.w.store; s != nil {
		if !l.w.reach(l.p.i, storePlace) {
			return
		}
		s.read(l, raw)
	} else {
		for _, p := range l.w.places {
			l.ask(p, raw)
		}
	}
	l.tell(raw)
}

// ask adds the incarnation running at p to the list. If it does not answer, the previous
// incarnation stays listed until enough rounds were missed.
func (l *process) ask(p *place, raw map[string]int) {
	o := p.incarnation
	if o != nil && !o.frozen && l.w.reach(l.p.i, p.i) && l.blind[p.i] <= l.w.Elapsed() {
		raw[o.id], l.missed[p.i] = p.i, 0
		return
	}
	if l.missed[p.i]++; l.missed[p.i] < l.w.misses {
		for id, at := range l.told {
			if at == p.i {
				raw[id] = at
			}
		}
	}
}

// tell publishes like Proto.Actor: without banned ids, and only if something has changed.
func (l *process) tell(raw map[string]int) {
	for id := range l.banned {
		delete(raw, id)
	}
	if maps.Equal(raw, l.told) {
		return
	}
	for id := range l.told {
		if _, ok := raw[id]; !ok {
			l.banned[id] = true
		}
	}
	l.told = raw
	var t topology
	for _, id := range slices.Sorted(maps.Keys(raw)) {
		t.members = append(t.members, listed{ID: id, Address: l.w.addressOf(raw[id])})
	}
	l.step(t)
}

func (l *process) step(e event) {
	if l.p.incarnation != l {
		return
	}
	l.hear(e)
	for _, eff := range l.core.Step(l.w.Now(), e) {
		switch eff := eff.(type) {
		case noted:
			if eff.what == permitGiven {
				l.w.judgePermit(l)
				l.w.givers[l] = true
			}
			if eff.what == permitGiven && l.w.Elapsed() < l.w.hunted {
				l.w.After(l.w.Span("hunter", 0, time.Second), func() {
					l.do(func() { l.p.crash(); l.p.startIn(3 * time.Second) })
				})
			}
		case send:
			l.carry(eff.address, received{member: l.id, from: l.core.incarnation, to: eff.to,
				hello: eff.hello})
		case name:
			l.carry(eff.address, named{l.id, l.core.incarnation, eff.to, eff.addresses})
		case publish:
			l.publish(eff.view)
		}
	}
	_, woken := e.(wake)
	if at := l.core.NextWake(); woken || !at.Equal(l.asked) {
		l.asked = at
		l.wakeAt(at)
	}
}

// hear records what judge needs.
func (l *process) hear(e event) {
	r, ok := e.(received)
	if !ok || r.to != l.core.incarnation {
		return
	}
	switch h := r.hello; {
	case h.yield:
		l.w.yields[request{id: r.member, incarnation: l.core.incarnation, sequence: h.sequence}]++
	case h.permit != 0:
		l.permit = &r
	}
}

func (l *process) wakeAt(at time.Time) {
	l.wake++
	if n := l.wake; !at.IsZero() {
		l.w.After(at.Sub(l.w.Now()), func() {
			l.do(func() {
				if l.wake == n {
					l.step(wake{})
				}
			})
		})
	}
}

func (l *process) carry(address string, e event) {
	to := l.w.placeAt(address)
	if to == nil {
		return
	}
	l.w.Send(l.p.i, to.i, e, func() {
		if o := to.incarnation; o != nil {
			o.do(func() { o.step(e) })
		}
	})
}

// publish ends the incarnation if the view is a removal; another one then begins at the same place.
func (l *process) publish(v *View) {
	if !v.Removed {
		l.w.Note("%s sees %s", l.id, strings.Join(idsOf(v.Members), " "))
		return
	}
	l.w.Note("%s ends: %v", l.id, v.Cause)
	l.p.incarnation = nil
	if s := l.w.store; s != nil {
		s.forget(l.id)
	}
	e := ending{l.w.Elapsed(), l.p.i, v.Cause, 0}
	if !errors.Is(v.Cause, ErrDropped) && l.permit != nil {
		e.giver = l.permit.from
	}
	l.w.judge(l, e)
	l.w.ends, l.p.ends, l.p.last = append(l.w.ends, e), append(l.p.ends, e.at), e
	if f := l.w.resplit; f != nil {
		l.w.resplit = nil
		f()
	}
	pause := l.w.Span("rebirth", 300*time.Millisecond, 1500*time.Millisecond)
	if l.w.Chance("slow", l.w.slow) {
		pause += l.w.Span("slower", 0, 40*time.Second)
	}
	l.p.startIn(pause)
}

func idsOf(ms []Member) (out []string) {
	for _, m := range ms {
		out = append(out, m.ID)
	}
	return out
}

// store is the store of a provider like etcd: members renew their keys, and all read them.
type store struct {
	w     *sim.World
	reach func(a, b int) bool
	ttl   time.Duration
	keys  map[string]entry
}

type entry struct {
	place  int
	expiry time.Duration
}

// keep writes the incarnation's key, now and until the incarnation ends.
func (s *store) keep(l *process) {
	if l.p.incarnation != l {
		return
	}
	s.w.After(s.ttl/3, func() { l.do(func() { s.keep(l) }) })
	if !l.frozen && s.reach(l.p.i, storePlace) {
		s.keys[l.id] = entry{l.p.i, s.w.Elapsed() + s.ttl}
	}
}

func (s *store) forget(id string) { delete(s.keys, id) }

func (s *store) read(l *process, raw map[string]int) {
	for id, e := range s.keys {
		if e.expiry > s.w.Elapsed() && l.blind[e.place] <= s.w.Elapsed() {
			raw[id] = e.place
		}
	}
}
