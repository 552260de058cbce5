package core

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Slot holds the entities of one shard during one tenure.
//
//	          message              passivated, stopped by itself, StopAll, over the limit
//	(none) ───────────▶ running ────────────────────────────────────▶ ending
//	   ▲                   ▲ ▲ │ failed                                  │ terminated
//	   │     back-off over │ │ ▼                                         │
//	   │                backing off                                      │
//	   └─ nothing waits ───┘ └───────── messages wait: started again ◀───┤
//	   └──────────────────────────────────── nothing waits ◀─────────────┘
//
// Messages are put into the mailbox of an entity that is running, and wait while it is ending or
// backing off. The stop message therefore follows all messages that were pushed, and no message
// follows it.
type Slot struct {
	cfg   SlotConfig
	epoch time.Time     // of the first step
	now   time.Duration // since the epoch
	out   []SlotEffect

	entities   map[string]*entity
	used       list // running, the least recently used last
	rest       list // ending, backing off and unknown
	limit      int  // of used; 0: none
	run        uint64
	stopping   bool
	stoppedNow bool
	empty      bool              // Empty was emitted
	waiting    map[string][]Body // for entities that do not run, or not yet
	held       int               // messages in waiting

	remembers // with SlotConfig.Remember
}

type entityState uint8

const (
	running entityState = iota
	ending
	backingOff
	unknown // its messages wait until the entity is remembered
)

type entity struct {
	id          string
	run         uint64
	incarnation any           // attached by the caller; nil: none, or it has terminated
	at          time.Duration // running: of the last message; ending: deadline; backing off: end
	failures    int32
	state       entityState
	forget      bool // ending: stop remembering it

	in         *list
	prev, next *entity
}

// NewSlot returns a slot without entities.
func NewSlot(cfg SlotConfig) *Slot {
	return &Slot{cfg: cfg, limit: cfg.Limit,
		entities: map[string]*entity{}, waiting: map[string][]Body{},
		remembers: remembers{known: map[string]bool{}}}
}

// Len returns the number of entities.
func (s *Slot) Len() int { return len(s.entities) }

// NextWake returns when the slot needs a Pass; zero: never.
func (s *Slot) NextWake() (at time.Time) {
	next := never
	if last := s.used.last; s.cfg.Idle > 0 && last != nil {
		next = after(last.at, s.cfg.Idle)
	}
	for e := s.rest.first; e != nil; e = e.next {
		if e.state == backingOff || e.state == ending && !s.stopping { // else StopAllNow ends it
			next = min(next, e.at)
		}
	}
	if len(s.pending) > 0 {
		next = min(next, s.turn)
	}
	if next == never {
		return time.Time{}
	}
	return s.epoch.Add(next)
}

// never is a time since the epoch that does not come.
const never = time.Duration(math.MaxInt64)

// after returns t + d, or never.
func after(t, d time.Duration) time.Duration { return t + min(d, never-t) }

// Step processes one event at time now and returns the effects, in order. The slice is valid until
// the next call.
func (s *Slot) Step(now time.Time, ev SlotEvent) []SlotEffect {
	if s.epoch.IsZero() {
		s.epoch = now
	}
	s.now, s.out = now.Sub(s.epoch), s.out[:0]
	switch ev := ev.(type) {
	case Take:
		s.take(ev.Body)
	case Passivate:
		if e := s.entities[ev.ID]; e != nil && e.run == ev.Run && e.state == running {
			e.forget = ev.Forget && !s.cfg.Keep
			s.stop(e)
		}
	case Terminated:
		s.onTerminated(ev)
	case StopAll:
		s.stopAll(ev.StoreFails)
	case StopAllNow:
		s.stopAllNow()
	case Pass:
		s.pass()
	case Recalled:
		s.recall(ev.IDs)
	case Remembered:
		s.onRemembered(ev.IDs)
	case Limit:
		s.limit = ev.N
		s.trim()
	}
	if s.stopping && len(s.entities) == 0 && !s.empty {
		s.empty = true
		s.emit(Empty{})
	}
	return s.out
}

// Direct is equivalent to Step with a Take for an entity that is running, but without an effect: it
// returns the attached value of its incarnation, to which the message must be pushed. If ok is
// false, nothing has changed, and the message must be passed to Step. now may be zero without
// SlotConfig.Idle.
func (s *Slot) Direct(now time.Time, id string) (incarnation any, ok bool) {
	e := s.entities[id]
	if !s.runs(e) {
		return nil, false
	}
	if s.cfg.Idle > 0 {
		e.at = now.Sub(s.epoch)
	}
	s.used.add(e)
	return e.incarnation, true
}

// runs reports whether an entity exists and takes messages without further ado.
func (s *Slot) runs(e *entity) bool { return e != nil && e.state == running && !s.stoppedNow }

// Attach sets the value of an incarnation that was just spawned. The slot keeps it for the caller
// until the incarnation has terminated.
func (s *Slot) Attach(id string, value any) { s.entities[id].incarnation = value }

// Live returns the ids of the entities with an incarnation that has not terminated, in any order.
func (s *Slot) Live() iter.Seq[string] {
	return func(yield func(string) bool) {
		for id, e := range s.entities {
			if e.incarnation != nil && !yield(id) {
				return
			}
		}
	}
}

// Incarnation returns the attached value of an incarnation that has not terminated, or nil.
func (s *Slot) Incarnation(id string) any {
	if e := s.entities[id]; e != nil {
		return e.incarnation
	}
	return nil
}

func (s *Slot) emit(e SlotEffect) { s.out = append(s.out, e) }

func (s *Slot) take(b Body) {
	e := s.entities[b.ID]
	switch {
	case s.runs(e):
		e.at = s.now
		s.used.add(e)
		s.emit(Push{b.ID, e.run, b})
	case s.stoppedNow:
		s.emit(Reject{b})
	case e == nil && (!s.cfg.Remember || s.known[b.ID]):
		s.start(s.enter(b.ID), b)
	case e != nil && len(s.waiting[b.ID]) >= s.cfg.Stash,
		s.cfg.Room != nil && !s.cfg.Room.Has(s.held):
		s.emit(Reject{b})
	case e == nil:
		s.wait(b)
		s.await(s.enter(b.ID))
	default:
		s.wait(b)
	}
}

// wait makes a message wait for its entity.
func (s *Slot) wait(b Body) {
	s.waiting[b.ID] = append(s.waiting[b.ID], b)
	s.hold(1)
}

// waited takes the messages that have waited for an entity.
func (s *Slot) waited(e *entity) []Body {
	waited := s.waiting[e.id]
	delete(s.waiting, e.id)
	s.hold(-len(waited))
	return waited
}

// enter adds an entity.
func (s *Slot) enter(id string) *entity {
	e := &entity{id: id}
	s.entities[id] = e
	return e
}

// hold counts messages that wait, or no longer wait.
func (s *Slot) hold(n int) {
	s.held += n
	if s.cfg.Room != nil {
		s.cfg.Room.Hold(n)
	}
}

// Held returns the number of messages that wait for entities that do not run yet.
func (s *Slot) Held() int { return s.held }

// start creates an incarnation and passes it the messages that have waited, and then those that
// have just arrived. Invariant: the previous incarnation has terminated.
func (s *Slot) start(e *entity, arrived ...Body) {
	s.run++
	e.run, e.state, e.at, e.forget = s.run, running, s.now, false
	s.used.add(e)
	s.emit(Spawn{e.id, e.run})
	for _, b := range s.waited(e) {
		s.emit(Push{e.id, e.run, b})
	}
	for _, b := range arrived {
		s.emit(Push{e.id, e.run, b})
	}
	if s.stopping {
		s.stop(e)
	}
	s.trim()
}

// trim passivates entities above the limit. Entities that are ending do not count.
func (s *Slot) trim() {
	for s.limit > 0 && s.used.n > s.limit {
		s.stop(s.used.last)
	}
}

func (s *Slot) stop(e *entity) {
	e.state, e.at = ending, never
	if s.cfg.HandOff > 0 {
		e.at = after(s.now, s.cfg.HandOff)
	}
	s.rest.add(e)
	s.emit(StopEntity{e.id, e.run})
}

func (s *Slot) remove(e *entity) {
	e.in.take(e)
	delete(s.entities, e.id)
}

// reject rejects the messages that wait for an entity.
func (s *Slot) reject(e *entity) {
	for _, b := range s.waited(e) {
		s.emit(Reject{b})
	}
}

// onTerminated continues with the messages that the incarnation left and those that have arrived
// since.
func (s *Slot) onTerminated(ev Terminated) {
	e := s.entities[ev.ID]
	if e == nil || e.run != ev.Run || e.state == backingOff || e.state == unknown {
		return
	}
	e.incarnation = nil
	itself := e.state == running
	failed := ev.Failed || itself && !ev.Worked // it may stop at every start
	if len(ev.Left) > 0 {
		s.waiting[e.id] = slices.Concat(ev.Left, s.waiting[e.id])
		s.hold(len(ev.Left))
	}
	if ev.Worked {
		e.failures = 0
	}
	if failed {
		e.failures++
	}
	again := (s.cfg.Remember && itself || s.cfg.Keep) && !s.stopping // unasked, or must run
	switch {
	case s.stoppedNow, int(e.failures) >= s.cfg.Failures && !again:
		s.reject(e)
		s.remove(e)
	case e.forget:
		s.dismiss(e)
	case int(e.failures) >= s.cfg.Failures:
		s.reject(e)
		s.backOff(e)
	case failed && !s.stopping, again && len(s.waiting[e.id]) == 0:
		s.backOff(e)
	case len(s.waiting[e.id]) > 0:
		s.start(e)
	default:
		s.remove(e)
	}
}

func (s *Slot) backOff(e *entity) {
	e.state, e.at = backingOff,
		after(s.now, min(s.cfg.MaxBackOff, s.cfg.BackOff<<min(max(0, e.failures-1), 16)))
	s.rest.add(e)
}

// stopAll drains the slot: an entity with waiting messages is started once more for them.
func (s *Slot) stopAll(storeFails bool) {
	s.stopping, s.pending = true, nil
	for e := s.rest.first; e != nil; {
		next := e.next
		switch {
		case e.state == unknown && storeFails:
			s.reject(e)
			s.remove(e)
		case e.state == ending, e.state == unknown:
		case len(s.waiting[e.id]) > 0:
			s.start(e)
		default:
			s.remove(e)
		}
		e = next
	}
	for s.used.last != nil {
		s.stop(s.used.last)
	}
}

func (s *Slot) stopAllNow() {
	s.stopping, s.stoppedNow, s.pending = true, true, nil
	for _, l := range []*list{&s.used, &s.rest} {
		for e := l.first; e != nil; {
			next := e.next
			if e.state == backingOff || e.state == unknown {
				s.reject(e)
				s.remove(e)
			} else {
				s.emit(StopEntityNow{e.id, e.run})
			}
			e = next
		}
	}
}

// pass passivates idle entities, stops those that do not end, restarts those whose back-off is
// over, and starts remembered ones whose turn has come.
func (s *Slot) pass() {
	for e := s.used.last; s.cfg.Idle > 0 && e != nil &&
		s.now-e.at >= s.cfg.Idle; e = s.used.last {
		s.stop(e)
	}
	for e := s.rest.first; e != nil; {
		next := e.next
		switch {
		case s.now < e.at, e.state == unknown:
		case e.state == ending:
			e.at = never
			s.emit(StopEntityNow{e.id, e.run})
		case len(s.waiting[e.id]) > 0 || s.known[e.id]:
			s.start(e)
		default:
			s.remove(e)
		}
		e = next
	}
	s.resume()
}

// list is a linked list of entities; each entity is in one list.
type list struct {
	first, last *entity
	n           int
}

// add moves an entity to the front.
func (l *list) add(e *entity) {
	if l.first == e {
		return
	}
	if e.in != nil {
		e.in.take(e)
	}
	e.in, e.next = l, l.first
	if l.first != nil {
		l.first.prev = e
	} else {
		l.last = e
	}
	l.first = e
	l.n++
}

func (l *list) take(e *entity) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.in, e.prev, e.next = nil, nil, nil
	l.n--
}
