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
	viewAt  time.Time       // when the view last changed; zero: there has been none
	n       int             // how many members there are, present and missing; 0: not known yet
	assumed bool            // n follows from the settings: this side has just started
	founded bool            // it has held the lease of the majority since
	begun   bool            // this member, or a former incarnation, has seen Config.Members members
	leaving map[string]bool // members that announced their departure
	gone    map[string]bool // members missing since none was
	foreign map[string]bool // members in view that use another lease store
	served  time.Time       // until when the view was known to be a majority; zero: never
	ended   bool

	kind Kind // the verdict that determines the gate
	why  string

	// State of a leader.
	op          uint64 // of the last attempt or probe
	major, rest claim
	probe       claim
	contest     time.Time // since when this side has had no majority; zero: it has one
	reachable   bool      // the store has answered in this contest
	apart       bool      // this member has led a side without a majority since it last followed
	unsure      bool      // then it did not know whether the store had just come back
	answers     time.Time // since when the store answers this member while it is apart; zero: never
	beat        time.Time // time of the next message
	said        Verdict

	// State of a follower.
	heard     time.Time // last message of the present leader; zero: none
	verdict   Kind      // its verdict
	elsewhere time.Time // since when its verdict has been Elsewhere; zero: it is another one
	// since when it is undecided and does not know how many members there are; zero: it is not so
	unnumbered time.Time
	stores     stores

	gate Gate
	told bool
	wake time.Time
}

// New returns an arbiter that has seen nothing. Its gate is shut.
func New(cfg Config) *Core {
	return &Core{cfg: cfg, begun: cfg.Later, kind: Undecided, why: "no view yet",
		leaving: map[string]bool{}, gone: map[string]bool{}, foreign: map[string]bool{}}
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
	case Probed:
		c.onProbed(e)
	case Compared:
		c.onCompared(e)
	case Lost:
		c.onLost(e)
	case Heard:
		c.onHeard(e)
	case Leave:
		c.onLeave()
		return c.out
	}
	switch {
	case c.ended, c.viewAt.IsZero():
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

// Counts returns how many members are in view, and how many there are; 0: not known yet.
func (c *Core) Counts() (here, all int) { return len(c.view.Members), c.known() }

// known returns how many members there are; 0: not known yet.
func (c *Core) known() int {
	if c.assumed && !c.founded {
		return 0
	}
	return c.n
}

// Elsewhere reports whether another side of the cluster is known to host.
func (c *Core) Elsewhere() bool { return c.kind == Elsewhere || c.kind == Yielding }

// Ended reports whether the member leaves the cluster or was removed from it.
func (c *Core) Ended() bool { return c.ended }

func (c *Core) emit(e any) { c.out = append(c.out, e) }

func (c *Core) leads() bool { return c.view.Self == c.view.Oldest }

func (c *Core) hasMajority() bool { return 2*len(c.view.Members) > c.n }

// missing reports whether members are missing.
func (c *Core) missing() bool { return len(c.view.Members) < c.n }

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
	if c.majority() {
		c.served = c.now
	}
	old := c.view
	v.Members = slices.Sorted(slices.Values(v.Members))
	c.view, c.begun = v, c.begun || len(v.Members) >= c.cfg.Members
	if v.Removed {
		c.end("the member was removed from the cluster")
		return
	}
	for _, id := range old.Members {
		if _, still := slices.BinarySearch(v.Members, id); still {
			continue
		}
		delete(c.foreign, id)
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
	if old.Oldest != v.Oldest {
		c.heard, c.verdict, c.elsewhere = time.Time{}, 0, time.Time{}
		c.unnumbered = time.Time{}
		c.stores.follows("")
	}
	if !slices.Equal(old.Members, v.Members) {
		c.contest = time.Time{}
	}
	c.viewAt = c.now
	c.beat = time.Time{} // notify all members
	c.major.due, c.major.taken = time.Time{}, time.Time{}
	c.count(c.n)
}

// count sets the number of members to n, or to the size of the view if that is larger.
func (c *Core) count(n int) {
	if n > 0 {
		n = max(n, len(c.view.Members))
	}
	if c.n = n; n > 0 && !c.missing() {
		clear(c.gone)
	}
}

// forget removes a member that has left in order from the count.
func (c *Core) forget(id string) {
	delete(c.leaving, id)
	delete(c.gone, id)
	c.n = max(c.n-1, min(c.n, 1))
}

// assumeNone counts only members that have been seen, when one of them leaves after the cluster has
// begun: fewer than begin a cluster may be left, and no others are missing.
func (c *Core) assumeNone() {
	if c.assumed && c.founded {
		c.assumed = false
		c.count(len(c.view.Members) + len(c.gone))
	}
}

// end shuts the gate permanently and releases the leases.
func (c *Core) end(why string) {
	c.release(&c.major)
	c.release(&c.rest)
	c.ended, c.kind, c.why = true, Undecided, why
}

// onLeave tells the other members not to count this one as missing.
func (c *Core) onLeave() {
	c.assumeNone()
	if !c.viewAt.IsZero() {
		c.emit(Send{c.others(), Verdict{Kind: Leaving, Members: c.known()}})
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
	_, listed := slices.BinarySearch(c.view.Members, e.From)
	if e.Verdict.Valid() && e.Verdict.Kind == Leaving && (listed || c.gone[e.From]) {
		c.assumeNone()
	}
	switch {
	case !e.Verdict.Valid():
	case c.gone[e.From] && e.Verdict.Kind == Leaving: // the view was updated first
		c.forget(e.From)
		c.count(c.n)
	case !listed:
	case e.Verdict.Kind == OtherStore:
		c.onOtherStore(e.From)
	case e.Verdict.Kind == Leaving:
		c.leaving[e.From] = true
		if e.From == c.view.Oldest && c.verdict == Ours {
			c.verdict = Pending // the lease is released with it
		}
		if e.From == c.view.Oldest && !c.leads() && c.known() > 0 && e.Verdict.Members > 0 {
			c.count(e.Verdict.Members)
		}
	case e.From == c.view.Oldest && !c.leads():
		c.heard, c.verdict = c.now, e.Verdict.Kind
		c.stores.follows(e.Verdict.Session)
		switch {
		case c.verdict != Elsewhere:
			c.elsewhere = time.Time{}
		case c.elsewhere.IsZero():
			c.elsewhere = c.now
		}
		switch unnumbered := c.verdict == Undecided && e.Verdict.Members == 0; {
		case !unnumbered:
			c.unnumbered = time.Time{}
		case c.unnumbered.IsZero():
			c.unnumbered = c.now
		}
		if e.Verdict.Members > 0 {
			c.assumed = false
			c.count(e.Verdict.Members)
		}
	case c.leads() && c.known() == 0 && e.Verdict.Members > 0: // see founds
		c.assumed = false
		c.count(e.Verdict.Members)
	}
}

func (c *Core) rule(k Kind, why string) { c.kind, c.why = k, why }

// speak sends the leader's verdict to the other members.
func (c *Core) speak() {
	v := Verdict{Kind: c.kind, Members: c.known()}
	if c.major.held {
		v.Session = c.cfg.Session
	}
	if v == c.said && !c.reached(c.beat) {
		return
	}
	every := c.cfg.Beat()
	if c.kind == Whole && !c.major.is(Taken) { // a former leader gives it up when it hears this one
		every = c.cfg.idle()
	}
	c.said, c.beat = v, c.now.Add(every)
	c.reached(c.beat)
	if to := c.others(); len(to) > 0 {
		c.emit(Send{to, v})
	}
}

// show emits the changes of the gate, and of what is known about where guarded work runs.
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
	return fmt.Sprintf("%v: %d of %d, leads %v, held %v %v, %s", c.kind, len(c.view.Members),
		c.n, c.leads(), c.major.held, c.rest.held, c.why)
}
