package core

import (
	"slices"
	"time"
)

// Allocation decides where shards should be: it is the coordinator during one tenure of its lease.
// It writes the table and does nothing else, so it may end at any time.
type Allocation struct {
	cfg   Config
	odd   uint64 // by which members with equal numbers of shards are ordered
	epoch uint64
	n     uint64
	full  uint64 // members that agreed with fewer assignments are sent the full table
	beats uint64 // beats so far
	now   time.Time
	out   []Effect

	self    Member
	view    []Member
	newest  []Member // members of the newest version; none: no versions differ
	table   table
	reports []report // one for each member in the view
	begun   time.Time
	changed time.Time // when the view last changed
	apart   time.Time // since when hosts reach the store and others do not; zero: all are alike
	settled bool
	beat    time.Time

	overrides
}

// report is the answer of a region to the latest Table of this coordinator, as far as it has
// arrived. If there is none yet, heard is zero, and an answer has a Beat above that in the Report.
type report struct {
	from Member
	Report
	heard time.Time
	ended bool      // if there is none yet: the region has ended
	tried time.Time // when it was last given a shard while unproven; zero: not since it was not
}

// NewAllocation returns the core of a coordinator whose lease has the token epoch. The core before
// it, if not nil, was of the same process. If it was also of the same tenure, the numbers of
// assignments and tables go on.
func NewAllocation(cfg Config, epoch uint64, before *Allocation) *Allocation {
	c := &Allocation{cfg: cfg, odd: hash(cfg.Type), epoch: epoch, table: newTable(cfg.Shards)}
	if before != nil && before.epoch == epoch {
		c.n, c.full, c.beats = before.n, before.n, before.beats
	}
	return c
}

// Home returns the assignment of a shard.
func (c *Allocation) Home(n int) Assignment { return c.table.entries[n] }

// NextWake returns when the core needs a Wake.
func (c *Allocation) NextWake() time.Time { return c.beat }

// Step processes one event at time now and returns the effects, in order. The caller owns the
// slice.
func (c *Allocation) Step(now time.Time, ev Event) []Effect {
	c.now, c.out = now, nil
	if c.begun.IsZero() {
		c.begun, c.beat = now, now
	}
	switch ev := ev.(type) {
	case View:
		c.onView(ev)
	case Received:
		if r, ok := ev.Message.(Report); ok && slices.Contains(c.view, ev.From) {
			c.onReport(ev.From, r)
		}
	case Known:
		c.merge(ev.Entries)
	case Overrides:
		c.onOverrides(ev)
	case Move:
		c.move(ev)
	}
	if !c.now.Before(c.beat) {
		c.settle()
		c.beat = c.now.Add(c.cfg.Beat)
		c.tell()
	}
	if !c.settled && c.allHeard() {
		c.beat = c.now // the Wake that is due at once decides
	}
	return c.out
}

func (c *Allocation) onView(v View) {
	if !slices.Equal(c.view, v.Members) {
		c.changed = c.now
	}
	c.self, c.view, c.newest = v.Self, slices.Clone(v.Members), slices.Clone(v.Newest)
	var reports []report
	for _, m := range c.view {
		if i := c.index(m); i >= 0 {
			reports = append(reports, c.reports[i])
		} else { // its answers to earlier tables are of an earlier time in the view
			reports = append(reports, report{from: m, Report: Report{Beat: c.beats}})
		}
	}
	c.reports = reports
	c.beat = c.now
}

// merge adds entries that an earlier coordinator wrote, whichever way they were received.
func (c *Allocation) merge(entries []Entry) {
	for _, e := range entries {
		if c.table.merge(e) {
			c.n++
			c.full = c.n
		}
	}
}

// onReport accepts the answer of a member in the view to a Table of this coordinator. If that of a
// later Table has arrived before, only the entries count. Answers without a number always count.
// An answer without a list of active shards is about the list with the same sum, and about no
// other.
func (c *Allocation) onReport(from Member, r Report) {
	c.merge(r.Entries)
	i := c.index(from)
	if r.Ended() {
		c.reports[i].ended, c.reports[i].Leaving = true, true
		return
	}
	if r.Epoch != c.epoch || r.Beat != 0 && (r.Beat <= c.reports[i].Beat || r.Beat > c.beats) {
		return
	}
	known := c.reports[i]
	switch {
	case len(r.Active) > 0 || r.Held == 0:
		r.Held = held(r.Active)
	case known.Held != r.Held:
		return // about another list than the last one; the next Table asks for the whole
	default:
		r.Active = known.Active
	}
	c.reports[i] = report{from: from, Report: r, heard: c.now}
	if r.Memory == MemoryUnproven {
		c.reports[i].tried = known.tried
	}
}

func (c *Allocation) index(m Member) int {
	return slices.IndexFunc(c.reports, func(r report) bool { return r.from == m })
}

// of returns the report of a member, or nil if it has not reported.
func (c *Allocation) of(m Member) *report {
	i := c.index(m)
	if i < 0 || c.reports[i].heard.IsZero() {
		return nil
	}
	return &c.reports[i]
}

// settle decides, but only after it has heard all members of the view or has waited for Settle.
func (c *Allocation) settle() {
	if !c.settled {
		c.settled = c.allHeard() || !c.now.Before(c.begun.Add(c.cfg.Settle))
	}
	if c.settled {
		c.reconcile()
		c.rebalance()
	}
}

// fit reports whether a member can host now: it is in the view, says so, and has heard this
// coordinator recently.
func (c *Allocation) fit(m Member, failing bool) bool {
	r := c.of(m)
	return slices.Contains(c.view, m) && r != nil && !c.now.After(r.heard.Add(c.cfg.Fit)) &&
		!r.Leaving && (failing || !r.Failing)
}

// missing reports whether a member in the view has not been heard yet, possibly because of lost
// messages, and its region is not known to have ended.
func (c *Allocation) missing(m Member) bool {
	i := c.index(m)
	return i >= 0 && c.reports[i].heard.IsZero() && !c.reports[i].ended
}

// allHeard reports whether no member of the view is missing. Before the first view, all are.
func (c *Allocation) allHeard() bool {
	return len(c.view) > 0 && !slices.ContainsFunc(c.view, c.missing)
}

// unheard reports whether a member is missing and must not be given up yet: it keeps its shards for
// as long as a member that has been heard would.
func (c *Allocation) unheard(m Member) bool {
	return c.missing(m) && c.now.Before(c.begun.Add(c.cfg.Fit))
}

// hosts returns the fit members, in the order of the view. If none of them reaches the store,
// failures of the store are ignored.
func (c *Allocation) hosts() (fit []Member) {
	for _, failing := range []bool{false, true} {
		for _, m := range c.view {
			if c.fit(m, failing) {
				fit = append(fit, m)
			}
		}
		if len(fit) > 0 {
			return fit
		}
	}
	return nil
}

// reconcile reassigns every shard whose home is not fit: to the member that has the shard, or to
// one that is chosen. If the user's function was asked for a home, the shard waits for the answer,
// but no longer than Answer.
func (c *Allocation) reconcile() {
	fit := c.hosts()
	if len(fit) == 0 {
		return
	}
	c.consult(fit)
	c.compare(fit)
	var homeless []int
	load := map[Member]int{}
	for s, a := range c.table.entries {
		load[a.Home]++
		if !slices.Contains(fit, a.Home) && !c.unheard(a.Home) && !c.unsure(a.Home) {
			homeless = append(homeless, s)
		}
	}
	if len(homeless) == 0 {
		return
	}
	active := c.active(fit)
	for _, s := range homeless {
		to := active[s]
		if to == (Member{}) && c.undecided() {
			continue
		}
		if to == (Member{}) {
			takers := fit
			if c.forgets(c.table.entries[s].Home) {
				takers = c.takers(fit)
			}
			if len(takers) == 0 {
				continue
			}
			to = c.choose(s, takers, load)
		}
		load[to]++
		c.assign(s, to)
	}
}

// compare notes whether there are members that fit but for the store.
func (c *Allocation) compare(fit []Member) {
	out := func(m Member) bool { return c.fit(m, true) && !slices.Contains(fit, m) }
	switch {
	case !slices.ContainsFunc(c.view, out):
		c.apart = time.Time{}
	case c.apart.IsZero():
		c.apart = c.now
	}
}

// unsure reports whether a member keeps its shards although the store does not answer it. Members
// notice the beginning and the end of an outage at different times.
func (c *Allocation) unsure(m Member) bool {
	return c.fit(m, true) && c.now.Before(c.apart.Add(c.cfg.Fit))
}

// forgets reports whether a member could host but for its store of remembered entities.
func (c *Allocation) forgets(m Member) bool {
	return c.fit(m, true) && c.of(m).Memory == MemoryFails
}

// takers returns the members to which shards of a member move whose store fails: those for which a
// call of the store of remembered entities has succeeded meanwhile. If there are none, the store
// may fail for all. Then, after a longer time, each member gets one shard, which shows it.
func (c *Allocation) takers(fit []Member) []Member {
	proven := slices.DeleteFunc(slices.Clone(fit), func(m Member) bool {
		return c.of(m).Memory != MemoryWorks
	})
	if len(proven) > 0 || c.now.Before(c.apart.Add(4*c.cfg.Fit)) {
		return proven
	}
	return slices.DeleteFunc(slices.Clone(fit), c.onTrial)
}

// onTrial reports whether a member was given a shard, and has not shown yet that its store of
// remembered entities answers. No further shard moves there by choice.
func (c *Allocation) onTrial(m Member) bool {
	r := c.of(m)
	return r != nil && r.Memory == MemoryUnproven && c.now.Before(r.tried.Add(trial))
}

// trial bounds onTrial: the report of a success may be lost.
const trial = time.Minute

// active returns, for each shard, which of the members has it, or the zero Member; the largest
// token wins.
func (c *Allocation) active(of []Member) []Member {
	at, high := make([]Member, c.cfg.Shards), make([]uint64, c.cfg.Shards)
	for _, m := range of {
		for _, t := range c.of(m).Active {
			if t.Shard < c.cfg.Shards && t.Token > high[t.Shard] {
				at[t.Shard], high[t.Shard] = m, t.Token
			}
		}
	}
	return at
}

// has reports whether a member has reported that it has a shard.
func (c *Allocation) has(m Member, shard int) bool {
	r := c.of(m)
	return r != nil && slices.ContainsFunc(r.Active, func(t Tenure) bool {
		return t.Shard == shard
	})
}

// assign writes an entry. The entry names all members that may still have the shard.
func (c *Allocation) assign(s int, to Member) {
	was := c.table.entries[s]
	if was.Home == to {
		return
	}
	var before []Member
	if was.Version.N != 0 {
		before = []Member{was.Home}
		if !c.has(was.Home, s) {
			for _, m := range was.Before {
				if m != was.Home && slices.Contains(c.view, m) {
					before = append(before, m)
				}
			}
		}
	}
	if i := c.index(to); i >= 0 && c.reports[i].Memory == MemoryUnproven {
		c.reports[i].tried = c.now
	}
	c.n++
	e := Entry{s, Assignment{Version{c.epoch, c.n}, to, before}}
	c.table.merge(e)
	c.emit(Assigned{e})
	c.beat = c.now // announce it at once
}

// move moves a shard on request, once it has arrived at its present home.
func (c *Allocation) move(ev Move) {
	if ev.Shard < 0 || ev.Shard >= c.cfg.Shards || !c.settled || !c.fit(ev.To, false) ||
		!c.has(c.table.entries[ev.Shard].Home, ev.Shard) {
		return
	}
	c.assign(ev.Shard, ev.To)
}

// mayStay reports whether a member of the view may host shards when the others have left. One that
// was not heard for Fit may have stopped before: a member is listed for a while after that.
func (c *Allocation) mayStay(m Member) bool { return c.fit(m, true) || c.unheard(m) }

// tell sends each member the entries that it may not know. It is repeated, and also shows that the
// coordinator is alive.
func (c *Allocation) tell() {
	c.beats++
	over := c.settled && len(c.view) > 0 && !slices.ContainsFunc(c.view, c.mayStay)
	for _, m := range c.view {
		t := Table{Epoch: c.epoch, Beat: c.beats, N: c.n, Sum: c.table.sum, Over: over}
		r := c.of(m)
		if r != nil {
			t.Held = r.Held
		}
		switch {
		case r == nil || r.Sum != t.Sum && (r.N < c.full || r.N > c.n):
			t.Entries = c.table.since(0, 0)
		case r.Sum != t.Sum:
			t.Entries = c.table.since(c.epoch, r.N)
		}
		c.emit(Tell{m, t})
	}
}

func (c *Allocation) emit(e Effect) { c.out = append(c.out, e) }
