package arbiter

import (
	"fmt"
	"slices"
	"time"
)

// Core is the arbiter of one member. Step must be called from one goroutine.
type Core struct {
	cfg Config
	now time.Time
	out []any

	view    View
	known   bool // there has been a view
	n       int  // the number of members; 0: not known yet
	whole   bool
	since   time.Time       // when whole last changed
	leaving map[string]bool // members that announced their departure
	gone    map[string]bool // members missing since the view was last whole
	ended   bool

	kind Kind // the verdict that determines the gate
	why  string

	// State of a leader.
	contest   time.Time // start of the contest; zero: none
	answer    Result
	asked     bool // there has been a result in this contest
	op        uint64
	trying    bool
	tried     time.Time
	due       time.Time // time of the next attempt
	held      uint64    // the attempt that holds the lease; 0: none
	releaseAt time.Time // time at which to release it; zero: keep it
	beat      time.Time // time of the next message
	said      Verdict

	// State of a follower.
	heard   time.Time // last message of the present leader; zero: none
	verdict Kind      // last verdict of any leader

	gate Gate
	told bool
	wake time.Time
}

// New returns an arbiter that has seen nothing. Its gate is shut.
func New(cfg Config) *Core {
	return &Core{cfg: cfg.WithDefaults(), kind: Undecided, why: "no view yet",
		leaving: map[string]bool{}, gone: map[string]bool{}}
}

// Step processes one event at time now and returns the effects, in order. now must not decrease.
func (c *Core) Step(now time.Time, e any) []any {
	c.out, c.wake = nil, time.Time{}
	c.now = now
	if c.ended {
		if e, ok := e.(Tried); ok && e.Result == Held {
			c.emit(Release{e.Op})
		}
		return c.out
	}
	switch e := e.(type) {
	case View:
		c.onView(e)
	case Tried:
		c.onTried(e)
	case Lost:
		c.onLost(e)
	case Heard:
		c.onHeard(e)
	case Leave:
		c.onLeave()
		return c.out
	}
	switch {
	case c.ended, !c.known:
	case c.leads():
		c.lead()
		c.speak()
	default:
		c.follow()
	}
	c.show()
	return c.out
}

// NextWake returns when the core needs a Wake; zero: never.
func (c *Core) NextWake() time.Time { return c.wake }

func (c *Core) emit(e any) { c.out = append(c.out, e) }

func (c *Core) leads() bool { return c.view.Self == c.view.Oldest }

// reached reports whether the time at has come. If not, it schedules a wake for it.
func (c *Core) reached(at time.Time) bool {
	if !c.now.Before(at) {
		return true
	}
	if c.wake.IsZero() || at.Before(c.wake) {
		c.wake = at
	}
	return false
}

func (c *Core) onView(v View) {
	old := c.view
	v.Members = slices.Sorted(slices.Values(v.Members))
	c.view = v
	if v.Removed {
		c.end("the member was removed from the cluster")
		return
	}
	for _, id := range old.Members {
		if _, still := slices.BinarySearch(v.Members, id); still {
			continue
		}
		if len(c.gone) >= maxMembers {
			clear(c.gone)
		}
		if c.gone[id] = true; c.leaving[id] {
			c.forget(id)
		}
	}
	for _, id := range v.Members {
		delete(c.gone, id)
	}
	if !c.known || old.Oldest != v.Oldest {
		c.contest, c.heard = time.Time{}, time.Time{}
	}
	c.beat = time.Time{} // notify all members
	c.count(c.n)
}

// count sets the number of members to n, or to the size of the view if that is larger.
func (c *Core) count(n int) {
	if n > 0 {
		n = max(n, len(c.view.Members))
	}
	c.n = n
	if whole := n > 0 && len(c.view.Members) >= max(n, c.cfg.Members); whole != c.whole ||
		!c.known {
		c.known, c.whole, c.since = true, whole, c.now
	}
	if c.whole {
		clear(c.gone)
	}
}

// forget removes a member that has left in order from the count.
func (c *Core) forget(id string) {
	delete(c.leaving, id)
	delete(c.gone, id)
	c.n = max(c.n-1, min(c.n, 1))
}

// end shuts the gate permanently and releases the lease.
func (c *Core) end(why string) {
	c.release()
	c.ended, c.kind, c.why = true, Undecided, why
}

// onLeave tells the other members not to count this one as missing.
func (c *Core) onLeave() {
	if c.known {
		c.emit(Send{c.others(), Verdict{Leaving, c.n}})
	}
	c.end("the member leaves the cluster")
	c.show()
}

func (c *Core) others() []string {
	return slices.DeleteFunc(slices.Clone(c.view.Members), func(id string) bool {
		return id == c.view.Self
	})
}

func (c *Core) onHeard(e Heard) {
	switch _, listed := slices.BinarySearch(c.view.Members, e.From); {
	case !e.Verdict.Valid():
	case c.gone[e.From] && e.Verdict.Kind == Leaving: // the view was updated first
		c.forget(e.From)
		c.count(c.n)
	case !listed:
	case e.Verdict.Kind == Leaving:
		c.leaving[e.From] = true
		if e.From == c.view.Oldest && c.verdict == Ours {
			c.heard = time.Time{} // the lease is released with it
		}
	case e.From == c.view.Oldest && !c.leads():
		c.heard, c.verdict = c.now, e.Verdict.Kind
		if e.Verdict.Members > 0 {
			c.count(e.Verdict.Members)
		}
	}
}

// follow sets the gate according to the leader.
func (c *Core) follow() {
	c.contest, c.trying = time.Time{}, false
	if c.held != 0 && !c.heard.IsZero() {
		c.surrender() // to the leader of both members
	}
	switch {
	case c.held != 0 && c.heard.IsZero():
		c.rule(Ours, "")
	case c.verdict == 0:
		c.rule(Undecided, "the oldest member has not announced which side hosts")
	case !c.verdict.open():
		c.rule(c.verdict, reason(c.verdict))
	case c.verdict == Whole && (c.whole || !c.reached(c.expiry())):
		c.rule(Whole, "")
	case c.verdict != Whole && !c.heard.IsZero() && !c.reached(c.heard.Add(c.cfg.Lapse)):
		c.rule(c.verdict, "")
	default:
		c.verdict = Undecided
		c.rule(Undecided, "the oldest member has not announced for a while which side hosts")
	}
}

// expiry returns until when the leader's verdict Whole counts although this member misses others.
func (c *Core) expiry() time.Time {
	missed := c.since.Add(c.cfg.Hold)
	if heard := c.heard.Add(c.cfg.Idle); !c.heard.IsZero() && heard.After(missed) {
		missed = heard
	}
	return missed.Add(c.cfg.Lapse)
}

func reason(k Kind) string {
	if k == Elsewhere {
		return "another side of the cluster holds the arbiter lease"
	}
	return "members are missing, and the arbiter lease is not held"
}

func (c *Core) rule(k Kind, why string) { c.kind, c.why = k, why }

// speak sends the leader's verdict to the other members.
func (c *Core) speak() {
	v := Verdict{c.kind, c.n}
	if v == c.said && !c.reached(c.beat) {
		return
	}
	every := c.cfg.Beat
	if c.kind == Whole {
		every = c.cfg.Idle
	}
	c.said, c.beat = v, c.now.Add(every)
	c.reached(c.beat)
	if to := c.others(); len(to) > 0 {
		c.emit(Send{to, v})
	}
}

// show emits the changes of the gate and of the lease.
func (c *Core) show() {
	if g := (Gate{c.kind.open(), c.why}); g != c.gate {
		c.gate = g
		c.emit(g)
	}
	if here := c.kind == Ours; here != c.told {
		c.told = here
		c.emit(Tell{here})
	}
}

// String describes the state, for test failures.
func (c *Core) String() string {
	return fmt.Sprintf("%v: %d of %d, leads %v, whole %v, held %d, %s", c.kind, len(c.view.Members),
		c.n, c.leads(), c.whole,
		c.held, c.why)
}
