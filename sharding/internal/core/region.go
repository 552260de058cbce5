package core

import (
	"container/heap"
	"slices"
	"time"
)

// Region is one member's part in a type: it brings what it does with its shards in line with what the
// table says it should do, and routes messages.
//
// It keeps these rules whatever the order of events (docs/sharding.md names them):
//
//  1. Entities run under a tenure that is held, and the lease is released when they have terminated.
//  2. A message goes under an announced tenure, names it, and is taken under no other.
//  3. Who has no tenure says that the shard is free, when asked; who has one, when the release is certain.
type Region struct {
	cfg Config
	now time.Time
	out []Effect

	self    Member
	view    []Member
	removed bool
	leaving bool
	over    bool // every region leaves
	failing bool
	shut    bool // the gate is

	table  table
	epoch  uint64    // of the newest coordinator heard
	agreed uint64    // N of the last Table of that epoch with which the own table agreed
	heard  time.Time // of a coordinator, last
	orphan bool      // on the wrong side: it gives up its shards
	asking bool      // a Look is under way
	look   time.Time // of the next one

	shards  []*shard
	active  int // shards that are active
	waiting int // messages that wait, of all shards
	bytes   int
	wakes   wakes
	changed []int // shards since the last Changed, in any order
}

// NewRegion returns a region that has seen no view yet.
func NewRegion(cfg Config) *Region {
	r := &Region{cfg: cfg, table: newTable(cfg.Shards), shards: make([]*shard, cfg.Shards)}
	for n := range r.shards {
		r.shards[n] = &shard{r: r, n: n}
	}
	return r
}

// Phase returns how far a shard is here, and the token of its tenure.
func (r *Region) Phase(n int) (Phase, uint64) { return r.shards[n].phase, r.shards[n].token }

// Home returns where a shard should be, as far as this region has heard.
func (r *Region) Home(n int) Assignment { return r.table.entries[n] }

// Waiting returns how many messages wait here for a shard.
func (r *Region) Waiting(n int) int { return len(r.shards[n].buffer) }

// Changed returns the shards whose Phase or Home may have changed since it was called last, each once: a member with
// thousands looks at no other. The slice is the caller's.
func (r *Region) Changed() []int {
	changed := r.changed
	for _, n := range changed {
		r.shards[n].marked = false
	}
	r.changed = nil
	return changed
}

// Withdraw takes out the messages that wait here for a shard.
func (r *Region) Withdraw(n int) []Body { return r.shards[n].withdraw() }

// Hopeful tells that another region may yet take shards.
func (r *Region) Hopeful() bool { return !r.over && !r.removed }

// Epoch returns that of the newest coordinator heard.
func (r *Region) Epoch() uint64 { return r.epoch }

// Orphan tells that the region has found itself on the wrong side of a partition.
func (r *Region) Orphan() bool { return r.orphan }

// Step takes one event at a time now and returns what to do, in order. The slice is the caller's.
func (r *Region) Step(now time.Time, ev Event) []Effect {
	r.now, r.out = now, nil
	switch ev := ev.(type) {
	case View:
		r.onView(ev)
	case Received:
		r.onReceived(ev)
	case Looked:
		r.onLooked(ev)
	case Store:
		r.failing = ev.Failing
	case Leave:
		r.leaving = true
	case Gate:
		r.shut = !ev.Open
		r.settle()
	case Known:
		for _, e := range ev.Entries {
			r.merge(e)
		}
	case Wake:
	default:
		r.onShard(ev)
	}
	r.repeat()
	return r.out
}

// onShard takes what happened to one shard in this process.
func (r *Region) onShard(ev Event) {
	switch ev := ev.(type) {
	case Send:
		r.at(ev.Shard, func(s *shard) { s.send(ev.Body) })
	case Held:
		r.at(ev.Shard, func(s *shard) { s.onHeld(ev) })
	case NotHeld:
		r.at(ev.Shard, func(s *shard) { s.onNotHeld(ev) })
	case Lost:
		r.at(ev.Shard, func(s *shard) { s.onLost(ev) })
	case Ended:
		r.at(ev.Shard, func(s *shard) { s.onEnded(ev) })
	case Released:
		r.at(ev.Shard, func(s *shard) { s.onReleased(ev) })
	}
}

// at does something with a shard, if there is one of that number.
func (r *Region) at(n int, do func(*shard)) {
	if n < 0 || n >= len(r.shards) {
		return
	}
	r.shards[n].mark()
	do(r.shards[n])
	r.shards[n].arm()
}

func (r *Region) onView(v View) {
	r.self, r.view = v.Self, slices.Clone(v.Members)
	r.removed = r.removed || v.Removed
	if r.heard.IsZero() {
		r.heard = r.now
	}
	r.settle()
}

// settle brings every shard in line with what it should do.
func (r *Region) settle() {
	for _, s := range r.shards {
		s.onView()
		s.settle()
		s.arm()
	}
}

// onReceived hears members of the view alone.
func (r *Region) onReceived(ev Received) {
	if r.removed || ev.From != r.self && !r.sees(ev.From) {
		return
	}
	switch m := ev.Message.(type) {
	case Table:
		r.onTable(ev.From, m)
	case AskFree:
		r.merge(m.Entry)
		r.at(m.Shard, func(s *shard) { s.onAskFree(ev.From) })
	case Free:
		r.at(m.Shard, func(s *shard) { s.onFree(ev.From, m) })
	case Active:
		r.at(m.Shard, func(s *shard) { s.onActive(ev.From, m.Token) })
	case Where:
		r.at(m.Shard, func(s *shard) { s.onWhere(ev.From) })
	case Pause:
		r.at(m.Shard, func(s *shard) { s.onPause(ev.From, m.Token) })
	case Flush:
		r.at(m.Shard, func(s *shard) { s.onFlush(ev.From, m) })
	case Inactive:
		r.at(m.Shard, func(s *shard) { s.forget(m.Token) })
	case NotHere:
		r.at(m.Shard, func(s *shard) { s.forget(m.Token) })
	case Data:
		r.at(m.Shard, func(s *shard) { s.onData(ev.From, m) })
	}
}

// onTable hears a coordinator, unless a newer one was heard before, and answers.
func (r *Region) onTable(from Member, t Table) {
	if t.Epoch < r.epoch {
		return
	}
	if t.Epoch > r.epoch {
		r.epoch, r.agreed = t.Epoch, 0
	}
	r.heard, r.look = r.now, time.Time{}
	for _, e := range t.Entries {
		r.merge(e)
	}
	if over := t.Over && r.leaving; r.orphan || over != r.over {
		r.orphan, r.over = false, over
		r.settle()
	}
	r.report(from, t)
}

func (r *Region) merge(e Entry) {
	if r.table.merge(e) {
		r.at(e.Shard, (*shard).settle)
	}
}

func (r *Region) report(to Member, t Table) {
	if r.table.sum == t.Sum {
		r.agreed = max(r.agreed, t.N)
	}
	rep := Report{Epoch: r.epoch, N: r.agreed, Sum: r.table.sum, Leaving: r.leaving || r.shut, Failing: r.failing}
	if r.table.sum != t.Sum {
		rep.Entries = r.table.since(0, 0)
	}
	for n, s := range r.shards {
		if s.phase == Running {
			rep.Active = append(rep.Active, Tenure{n, s.token})
		}
	}
	r.tell(to, rep)
}

// onLooked gives the shards up if another session, which is not heard, assigns them. Without one, the coordinator is only
// late, and they stay.
func (r *Region) onLooked(ev Looked) {
	r.asking = false
	if ev.Other && !r.orphaned().After(r.now) {
		r.orphan = true
		r.settle()
	}
}

// orphaned is when the silence of coordinators is long enough to look for the reason.
func (r *Region) orphaned() time.Time { return r.heard.Add(r.cfg.Orphan) }

// repeat does what is due: it says again what may have been lost.
func (r *Region) repeat() {
	for len(r.wakes) > 0 && !r.wakes[0].at.After(r.now) {
		w := heap.Pop(&r.wakes).(wake)
		if s := r.shards[w.shard]; s.wake.Equal(w.at) {
			s.wake = time.Time{}
			s.repeat()
			s.arm()
		}
	}
	if at := r.lookAt(); !at.IsZero() && !at.After(r.now) {
		r.asking, r.look = true, r.now.Add(r.cfg.Repeat)
		r.emit(Look{})
	}
}

// lookAt is when the coordinator's lease is to be looked at; zero: there is no need to.
func (r *Region) lookAt() time.Time {
	if r.active == 0 || r.orphan || r.asking || r.removed || r.heard.IsZero() {
		return time.Time{}
	}
	if at := r.orphaned(); at.After(r.look) {
		return at
	}
	return r.look
}

// NextWake is when a Wake is wanted; zero: not at all.
func (r *Region) NextWake() time.Time {
	at := r.lookAt()
	if len(r.wakes) > 0 && (at.IsZero() || r.wakes[0].at.Before(at)) {
		at = r.wakes[0].at
	}
	return at
}

func (r *Region) sees(m Member) bool { return slices.Contains(r.view, m) }

func (r *Region) emit(e Effect) { r.out = append(r.out, e) }

func (r *Region) tell(to Member, m Message) { r.emit(Tell{to, m}) }

// tellOthers tells all other members of the view.
func (r *Region) tellOthers(m Message) {
	for _, to := range r.view {
		if to != r.self {
			r.tell(to, m)
		}
	}
}

// wake is when a shard wants to repeat something. Of several of one shard that in shard.wake counts.
type wake struct {
	at    time.Time
	shard int
}

// wakes is a heap, the soonest first.
type wakes []wake

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, j int) bool {
	return w[i].at.Before(w[j].at) || w[i].at.Equal(w[j].at) && w[i].shard < w[j].shard
}
func (w wakes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

func (r *Region) push(w wake) { heap.Push(&r.wakes, w) }
