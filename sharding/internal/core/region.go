package core

import (
	"container/heap"
	"slices"
	"time"
)

// Region is one member's part in a type: it brings its shards in line with the table, and routes
// messages.
//
// It follows these rules whatever the order of events (the package comment has all):
//
//  1. Entities run under a tenure that is held, and the lease is released when they have
//     terminated.
//  2. A message is sent under an announced tenure, names it, and is accepted under no other.
//  3. When asked, a region without a tenure answers that the shard is free; one with a tenure
//     answers so when the release is certain.
type Region struct {
	cfg Config
	now time.Time
	out []Effect

	self     Member
	view     []Member
	ended    []Member // of the view: their regions have ended
	departed []Member // the ended ones that the last view does not list any more
	removed  bool
	leaving  bool
	over     bool // every region leaves, and so does this one: it takes no shard again
	store    Store
	shut     bool      // the gate is shut
	finish   time.Time // after Finish: when it no longer waits for other members

	table  table
	epoch  uint64    // of the newest coordinator heard
	beat   uint64    // largest Beat of that epoch heard
	agreed uint64    // N of the last Table of that epoch with which the own table agreed
	heard  time.Time // when a coordinator was last heard
	orphan bool      // without a coordinator that it can hear: gives up its shards
	asking bool      // a Look is in progress
	look   time.Time // when the next Look is due

	shards []*shard
	peers  map[Member]*peer
	askAt  time.Time // when to ask peers what they have taken; zero: never
	active int       // shards that are active

	delivering, deliveringBytes int // deliveries that are not confirmed

	turns   turns
	wakes   wakes
	changed []int // shards changed since the last Changed, in any order
}

// NewRegion returns a region that has seen no view yet.
func NewRegion(cfg Config) *Region {
	r := &Region{cfg: cfg, table: newTable(cfg.Shards), shards: make([]*shard, cfg.Shards),
		peers: map[Member]*peer{}}
	for n := range r.shards {
		r.shards[n] = &shard{r: r, n: n}
	}
	return r
}

// Phase returns the phase of a shard here, and the token of its tenure.
func (r *Region) Phase(n int) (Phase, uint64) { return r.shards[n].phase, r.shards[n].token }

// Home returns the assignment of a shard, as far as this region knows.
func (r *Region) Home(n int) Assignment { return r.table.entries[n] }

// Host returns the member whose tenure of a shard is the last one known here, or else its home. The
// coordinator assigns shards anew when a host is silent, before it is dropped.
func (r *Region) Host(n int) Member {
	if s := r.shards[n]; s.last != 0 {
		return s.host
	}
	return r.Home(n).Home
}

// Changed returns the shards whose Phase or Home may have changed since the last call, each once,
// so that a member with thousands of shards need not examine the others. The caller owns the slice.
func (r *Region) Changed() []int {
	changed := r.changed
	for _, n := range changed {
		r.shards[n].marked = false
	}
	r.changed = nil
	return changed
}

// Abandon removes and returns the deliveries to a shard that are not confirmed, with the outcome
// Unsent or InDoubt.
func (r *Region) Abandon(n int) []Conclude { return r.shards[n].abandon() }

// Hopeful reports whether another region may still take shards.
func (r *Region) Hopeful() bool { return !r.over && !r.removed }

// Epoch returns the epoch of the newest coordinator heard.
func (r *Region) Epoch() uint64 { return r.epoch }

// Ended returns the members of the view whose regions have ended. The caller owns the slice.
func (r *Region) Ended() []Member { return slices.Clone(r.ended) }

// Orphan reports whether the region gives up its shards since it hears no coordinator.
func (r *Region) Orphan() bool { return r.orphan }

// Step processes one event at time now and returns the effects, in order. They are valid
// until the next call.
func (r *Region) Step(now time.Time, ev Event) []Effect {
	clear(r.out)
	r.now, r.out = now, r.out[:0]
	switch ev := ev.(type) {
	case View:
		r.onView(ev)
	case Received:
		r.onReceived(ev)
	case Looked:
		r.onLooked(ev)
	case Store:
		r.store = ev
	case Leave:
		r.leaving = true
	case Finish:
		r.finish = r.now.Add(r.cfg.FlushTimeout)
		r.askTaken()
	case Left:
		r.farewell()
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
	r.takeTurns()
	return r.out
}

// onShard processes an event of this process about one shard.
func (r *Region) onShard(ev Event) {
	switch ev := ev.(type) {
	case Waits:
		r.at(ev.Shard, (*shard).onWaits)
	case Blocked:
		r.at(ev.Shard, func(s *shard) { s.onBlocked(ev.Token) })
	case NoCredit:
		r.at(ev.Shard, func(s *shard) { s.onNoCredit(ev) })
	case BeginDelivery:
		r.at(ev.Shard, func(s *shard) { s.begin(ev) })
	case EndDelivery:
		r.at(ev.Shard, func(s *shard) { s.endDelivery(ev.Number) })
	case Arrived:
		r.at(ev.Data.Shard, func(s *shard) { s.onArrived(ev) })
	case Counted:
		r.at(ev.Shard, func(s *shard) { s.onCounted(ev) })
	case Handled:
		r.at(ev.Shard, func(s *shard) { s.onHandled(ev) })
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

// at calls do for the shard with the number n, if there is one.
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
	r.departed = slices.DeleteFunc(slices.Clone(r.ended), r.sees)
	r.ended = slices.DeleteFunc(r.ended, func(m Member) bool { return !r.sees(m) })
	r.removed = r.removed || v.Removed
	if r.heard.IsZero() {
		r.heard = r.now
	}
	r.dropPeers()
	r.settle()
}

// settle brings every shard in line with its assignment.
func (r *Region) settle() {
	for _, s := range r.shards {
		s.onView()
		s.settle()
		s.arm()
	}
}

// onReceived processes a message. It accepts messages only from members of the view.
func (r *Region) onReceived(ev Received) {
	if r.removed || ev.From != r.self && !r.sees(ev.From) {
		return
	}
	if i := slices.Index(r.ended, ev.From); i >= 0 { // perhaps it has another region now
		r.ended = slices.Delete(r.ended, i, i+1)
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
		r.at(m.Shard, func(s *shard) { s.onInactive(m.Token) })
	case NotHere:
		r.at(m.Shard, func(s *shard) { s.forget(m.Token) })
	case Sent:
		r.tell(ev.From, Taken(m))
	case Taken:
		r.onTaken(ev.From)
	case Confirm:
		r.at(m.Shard, func(s *shard) { s.onConfirm(m.Number) })
	case Data:
		r.at(m.Shard, func(s *shard) { s.strange(ev.From, m) })
	case Report:
		if m.Ended() {
			r.ended = append(r.ended, ev.From)
			r.settle()
		}
	}
}

// onTable processes the Table of a coordinator and answers it, unless a newer coordinator was heard
// before.
func (r *Region) onTable(from Member, t Table) {
	if t.Epoch < r.epoch {
		return
	}
	if t.Epoch > r.epoch {
		r.epoch, r.beat, r.agreed = t.Epoch, 0, 0
	}
	r.beat = max(r.beat, t.Beat)
	r.heard, r.look = r.now, time.Time{}
	for _, e := range t.Entries {
		r.merge(e)
	}
	orphan, over := r.orphan && r.leaving, r.over || t.Over && r.leaving
	if orphan != r.orphan || over != r.over {
		r.orphan, r.over = orphan, over
		r.settle()
	}
	r.report(from, t)
}

// farewell tells all members of the view, including this one, that this region has ended.
func (r *Region) farewell() {
	if r.removed {
		return
	}
	for _, to := range r.view {
		r.tell(to, Farewell())
	}
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
	rep := Report{Epoch: r.epoch, Beat: r.beat, N: r.agreed, Sum: r.table.sum,
		Leaving: r.leaving || r.shut, Failing: r.store.Failing ||
			r.store.Memory == MemoryFails, Memory: r.store.Memory}
	if r.table.sum != t.Sum {
		rep.Entries = r.table.since(0, 0)
	}
	for n, s := range r.shards {
		if s.phase == Running {
			rep.Held += (Tenure{n, s.token}).hash()
		}
	}
	if rep.Held != t.Held {
		rep.Active = r.tenures()
	}
	r.tell(to, rep)
}

// tenures returns the active shards.
func (r *Region) tenures() []Tenure {
	active := make([]Tenure, 0, r.active)
	for n, s := range r.shards {
		if s.phase == Running {
			active = append(active, Tenure{n, s.token})
		}
	}
	return active
}

// onLooked gives up the shards if another session, which this region does not hear, holds the
// coordinator's lease. Otherwise the coordinator is only late, and the shards stay.
func (r *Region) onLooked(ev Looked) {
	r.asking = false
	if ev.Other && !r.orphaned().After(r.now) {
		r.orphan = true
		r.settle()
	}
}

// orphaned returns when the coordinators have been silent long enough to check the reason.
func (r *Region) orphaned() time.Time { return r.heard.Add(r.cfg.Orphan) }

// repeat does what is due: it resends messages that may have been lost.
func (r *Region) repeat() {
	for len(r.wakes) > 0 && !r.wakes[0].at.After(r.now) {
		w := heap.Pop(&r.wakes).(wake)
		if s := r.shards[w.shard]; s.wake.Equal(w.at) {
			s.wake = time.Time{}
			s.repeat()
			s.arm()
		}
	}
	if !r.askAt.IsZero() && !r.now.Before(r.askAt) {
		r.askTaken()
	}
	switch at := r.lookAt(); {
	case at.IsZero() || at.After(r.now):
	case r.leaving: // nobody moves its shards
		r.orphan = true
		r.settle()
	default:
		r.asking, r.look = true, r.now.Add(r.cfg.Repeat)
		r.emit(Look{})
	}
}

// lookAt returns when to check the coordinator's lease; zero: no need.
func (r *Region) lookAt() time.Time {
	if r.active == 0 || r.orphan || r.asking || r.removed || r.heard.IsZero() {
		return time.Time{}
	}
	if at := r.orphaned(); at.After(r.look) {
		return at
	}
	return r.look
}

// NextWake returns when the region needs a Wake; zero: never.
func (r *Region) NextWake() time.Time {
	at := earliest(r.lookAt(), r.askAt, r.turns.due())
	if len(r.wakes) > 0 {
		at = earliest(at, r.wakes[0].at)
	}
	return at
}

// earliest returns the first of the times that are not zero.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

func (r *Region) sees(m Member) bool { return slices.Contains(r.view, m) }

// awaits reports whether a member can answer. A region that has ended does not, and has no message
// on its way: it waited until all were confirmed.
func (r *Region) awaits(m Member) bool { return r.sees(m) && !slices.Contains(r.ended, m) }

func (r *Region) emit(e Effect) { r.out = append(r.out, e) }

func (r *Region) tell(to Member, m Message) { r.emit(Tell{to, m}) }

// tellOthers sends a message to all other members of the view.
func (r *Region) tellOthers(m Message) {
	for _, to := range r.view {
		if to != r.self {
			r.tell(to, m)
		}
	}
}

// wake is the time at which a shard wants to repeat something. If a shard has several, only the one
// equal to shard.wake counts.
type wake struct {
	at    time.Time
	shard int
}

// wakes is a min-heap by time.
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
