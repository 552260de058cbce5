package core

import (
	"slices"
	"time"
)

// Phase is the phase of a shard at one region.
//
//	         assigned          all in Before are free, gone or silent for Patience
//	Away ───────────▶ Waiting ────────────────────────▶ Acquiring ───held──▶ Running
//	 ▲                   │ not assigned                    │ not assigned      │ not assigned
//	 │◀──────────────────┘                                 ▼                   ▼
//	 │◀── Free sent ◀── release certain, or over ── Releasing ◀─gone─ Stopping ◀── Flushing
//	                                                                    ▲ all have flushed, or FlushTimeout
//	                                                Running, Flushing: lost ─┘ stop now
type Phase uint8

// Phases. Entities exist only in Running, Flushing and Stopping.
const (
	Away      Phase = iota // no tenure, and none wanted
	Waiting                // assigned here; another region may still have it
	Acquiring              // an attempt is in progress
	Running                // the lease is held: entities live here
	Flushing               // to be given up: other regions hold back and report what they sent
	Stopping               // the entities were asked to stop
	Releasing              // they have stopped, or an attempt is withdrawn: the lease is released
)

func (p Phase) String() string {
	return [...]string{"away", "awaiting the lease", "acquiring", "active", "flushing", "stopping",
		"releasing"}[p]
}

// shard is one shard at one region: the host side is here, the sending side in route.go.
type shard struct {
	r *Region
	n int

	phase   Phase
	since   time.Time
	token   uint64 // of the tenure; 0: none
	attempt uint64 // number of the last attempt
	tried   time.Time
	pause   time.Duration // until the next attempt

	unanswered int // attempts in a row without an answer of the store

	free       []Member // members that reported so, for the version freeOf
	freeOf     Version
	blank      Blank // state in which the last holder left the lease
	stoppedNow bool
	marked     bool // in Region.changed
	queued     bool // in turns.queue

	owed []debt // regions that must flush
	tally

	route
	outbox
	inbox

	wake time.Time // in Region.wakes; zero: none
}

// debt is a region that was asked to flush, and the number of messages that it has sent.
type debt struct {
	from    Member
	flushed bool
	number  uint64
}

// tally is what a host knows of the messages of other members in its tenure.
type tally struct {
	came     uint64            // deliveries that have arrived
	counted  bool              // Counted has come
	admitted uint64            // deliveries accepted before that, which may be on their way
	heard    map[Member]uint64 // while it gives the shard up: last number accepted from each
}

// hear records that the messages of a member up to this number were accepted.
func (t *tally) hear(from Member, number uint64) {
	if t.heard != nil {
		t.heard[from] = max(t.heard[from], number)
	}
}

// onCounted begins to wait for the deliveries that are on their way.
func (s *shard) onCounted(ev Counted) {
	if s.phase != Flushing || ev.Token != s.token {
		return
	}
	s.counted, s.admitted = true, ev.Deliveries
	for from, number := range ev.Last {
		s.hear(from, number)
	}
	s.flushed()
}

// assigned reports whether the shard should be here.
func (s *shard) assigned() bool {
	a := s.r.table.entries[s.n]
	return a.Version.N != 0 && a.Home == s.r.self && !s.r.orphan && !s.r.removed &&
		!s.r.over && !s.r.shut
}

func (s *shard) enter(p Phase) {
	was := s.phase
	if p == Running {
		s.r.active++
	}
	if was == Running {
		s.r.active--
	}
	s.phase, s.since = p, s.r.now
	s.mark()
	switch {
	case p == Flushing:
		s.r.emit(Admit{s.n, s.token, true})
	case was == Running || was == Flushing:
		s.r.emit(Admit{Shard: s.n})
	}
}

// mark records that the phase, the token or the home may have changed.
func (s *shard) mark() {
	if !s.marked {
		s.marked = true
		s.r.changed = append(s.r.changed, s.n)
	}
}

// settle brings the phase in line with the table.
func (s *shard) settle() {
	switch s.phase {
	case Away:
		if s.assigned() {
			s.enter(Waiting)
			s.unanswered = 0
			s.wait()
		}
	case Waiting:
		if !s.assigned() {
			s.gone(s.blank)
		}
	case Acquiring:
		if !s.assigned() {
			s.enter(Releasing) // until the attempt has ended
		}
	case Running:
		if !s.assigned() {
			s.yield()
		}
	}
}

// wait asks the members that may still have the shard, and acquires the lease when none is left.
func (s *shard) wait() {
	holders := s.holders()
	if len(holders) == 0 || !s.r.now.Before(s.since.Add(s.r.cfg.Patience)) {
		s.acquire()
		return
	}
	for _, m := range holders {
		s.r.tell(m, AskFree{Entry{s.n, s.r.table.entries[s.n]}})
	}
}

// holders returns the members of the view that may still have the shard.
func (s *shard) holders() (left []Member) {
	a := s.r.table.entries[s.n]
	for _, m := range a.Before {
		if m != s.r.self && s.r.sees(m) && !(s.freeOf == a.Version && slices.Contains(s.free, m)) {
			left = append(left, m)
		}
	}
	return left
}

func (s *shard) onFree(from Member, f Free) {
	if s.phase != Waiting || f.Version != s.r.table.entries[s.n].Version {
		return
	}
	if s.freeOf != f.Version {
		s.free, s.freeOf = nil, f.Version
	}
	if !slices.Contains(s.free, from) {
		s.free = append(s.free, from)
	}
	if f.Blank.Token > s.blank.Token {
		s.blank = f.Blank
	}
	if len(s.holders()) == 0 {
		s.acquire()
	}
}

func (s *shard) onAskFree(from Member) {
	s.settle()
	if s.phase == Away {
		s.r.tell(from, Free{s.n, s.r.table.entries[s.n].Version, s.blank})
	}
}

func (s *shard) acquire() {
	s.enter(Acquiring)
	s.attempt++
	s.r.emit(Acquire{s.n, s.attempt, s.blank})
	s.blank = Blank{}
}

// onHeld begins a tenure if it is still wanted. A lease that was granted too late is released.
func (s *shard) onHeld(ev Held) {
	switch {
	case ev.Attempt == s.attempt && s.phase == Acquiring:
		s.token = ev.Token
		s.activate()
	case ev.Attempt == s.attempt && s.phase == Releasing && s.token == 0:
		s.token = ev.Token
		s.r.emit(Release{s.n, ev.Token})
	case ev.Token != s.token:
		s.r.emit(Release{s.n, ev.Token})
	}
}

// unknownPause is the time until the next attempt after one that the store did not answer. It
// doubles with each further one, up to Config.Retry: all shards of a member try while the store
// fails.
const unknownPause = 200 * time.Millisecond

func (s *shard) onNotHeld(ev NotHeld) {
	switch {
	case ev.Attempt != s.attempt:
	case s.phase == Releasing && s.token == 0:
		s.gone(Blank{})
	case s.phase == Acquiring:
		waited := s.since
		s.enter(Waiting)
		s.since = waited.Add(-s.r.cfg.Patience) // the patience is used up
		s.tried, s.pause = s.r.now, s.r.cfg.Retry
		if ev.Taken {
			s.unanswered = 0
		} else {
			s.pause = min(s.pause, unknownPause<<min(s.unanswered, 16))
			s.unanswered++
		}
	}
}

func (s *shard) activate() {
	s.enter(Running)
	s.stoppedNow, s.inbox, s.tally, s.unanswered = false, inbox{}, tally{}, 0
	s.r.emit(Start{s.n, s.token})
	s.r.emit(Admit{Shard: s.n, Token: s.token})
	s.r.tellOthers(Active{s.n, s.token})
	s.onActive(s.r.self, s.token)
	s.settle()
}

// flush begins to give up the shard: no messages of this process are accepted any more, and none of
// another region after its answer.
func (s *shard) flush() {
	s.heard = map[Member]uint64{}
	s.enter(Flushing)
	s.forget(s.token)
	s.paused = s.paused || s.last == s.token
	s.owed = nil
	for _, m := range s.r.view {
		if m != s.r.self {
			s.owed = append(s.owed, debt{from: m})
		}
	}
	s.r.tellOthers(Pause{s.n, s.token})
	s.flushed()
}

func (s *shard) onFlush(from Member, f Flush) {
	if s.phase != Flushing || f.Token != s.token {
		return
	}
	for i := range s.owed {
		if s.owed[i].from == from {
			s.owed[i].flushed, s.owed[i].number = true, f.Number
		}
	}
	s.flushed()
}

// flushed stops the entities when all messages sent to them have arrived, or FlushTimeout has
// passed.
func (s *shard) flushed() {
	if s.phase != Flushing {
		return
	}
	if s.r.now.Before(s.since.Add(s.r.cfg.FlushTimeout)) {
		for _, d := range s.owed {
			if s.r.awaits(d.from) && (!d.flushed || s.heard[d.from] < d.number) {
				return
			}
		}
		if !s.counted || s.came < s.admitted {
			return
		}
	}
	s.enter(Stopping)
	s.r.emit(Stop{s.n, s.token})
}

func (s *shard) stopNow() {
	if !s.stoppedNow {
		s.stoppedNow = true
		s.r.emit(StopNow{s.n, s.token})
	}
}

// onLost ends a tenure at once: the lease leaves the entities time for the message being handled.
func (s *shard) onLost(ev Lost) {
	if ev.Token != s.token || s.phase != Running && s.phase != Flushing && s.phase != Stopping {
		return
	}
	s.forget(s.token)
	s.r.tellOthers(Inactive{s.n, s.token})
	if s.phase != Stopping {
		s.enter(Stopping)
	}
	s.stopNow()
}

// onEnded releases the lease. Invariant: every entity of the tenure has terminated.
func (s *shard) onEnded(ev Ended) {
	if ev.Token == s.token && s.phase == Stopping {
		s.enter(Releasing)
		s.r.emit(Release{s.n, s.token})
	}
}

func (s *shard) onReleased(ev Released) {
	if ev.Token != s.token || s.phase != Releasing {
		return
	}
	s.token, s.inbox = 0, inbox{}
	if !ev.Certain { // no Free is sent; a region that asks is told that there is no tenure here
		s.enter(Away)
		s.settle()
		return
	}
	s.gone(ev.Blank)
}

// gone ends the release or the wait, and reports to the home that the shard is free.
func (s *shard) gone(b Blank) {
	s.enter(Away)
	s.blank = b
	if a := s.r.table.entries[s.n]; a.Version.N != 0 && a.Home != s.r.self {
		s.r.tell(a.Home, Free{s.n, a.Version, b})
	}
	s.settle()
}

// onView reacts to a changed view: members that were waited for may be gone.
func (s *shard) onView() {
	switch s.phase {
	case Waiting:
		if s.pause == 0 && len(s.holders()) == 0 {
			s.acquire()
		}
	case Flushing:
		s.flushed()
	}
	s.unseen()
}

// repeat resends messages that may have been lost, and ends phases that have taken too long.
func (s *shard) repeat() {
	s.settle()
	switch s.phase {
	case Waiting:
		if !s.r.now.Before(s.tried.Add(s.pause)) {
			s.pause = 0
			s.wait()
		}
	case Flushing:
		for _, d := range s.owed {
			if !d.flushed && s.r.sees(d.from) {
				s.r.tell(d.from, Pause{s.n, s.token})
			}
		}
		s.flushed()
	case Stopping:
		if !s.r.now.Before(s.since.Add(s.r.cfg.HandOff)) {
			s.stopNow()
		}
	}
	s.ask()
	s.resend()
}

// arm schedules the next call of repeat.
func (s *shard) arm() {
	var at time.Time
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	again := s.r.now.Add(s.r.cfg.Repeat)
	switch s.phase {
	case Waiting:
		soonest(again)
		if s.pause > 0 {
			at = s.tried.Add(s.pause)
		}
	case Flushing:
		soonest(again)
		soonest(s.since.Add(s.r.cfg.FlushTimeout))
	case Stopping:
		if !s.stoppedNow {
			soonest(s.since.Add(s.r.cfg.HandOff))
		}
	}
	if s.asks() {
		soonest(again)
	}
	if s.to != 0 && !s.scan.IsZero() {
		soonest(s.scan)
	}
	if at.IsZero() || !s.wake.IsZero() && !at.Before(s.wake) {
		return
	}
	s.wake = at
	s.r.push(wake{at, s.n})
}
