package core

import (
	"maps"
	"slices"
	"time"
)

// overrides holds homes chosen from outside: by a replicated table that applications write, or by a
// user function. An override names a member by id or address. It applies while that member is fit,
// and is ignored otherwise.
type overrides struct {
	chosen map[int]string // by shard

	round     uint64
	open      bool // a Consult is unanswered
	asked     time.Time
	consulted []Member // the fit members at that time
}

// Overrides sets the homes chosen from outside, replacing the previous ones. Round is that of the
// Consult that it answers.
type Overrides struct {
	Round uint64
	Homes map[int]string
}

// Consult asks for Overrides: the answer of the user's function for these hosts and homes. It gets
// exactly one answer, however late, and no other Consult is emitted before that.
type Consult struct {
	Round uint64
	Hosts []Member
	Homes []Member // by shard; the zero Member means none
}

func (Overrides) event() {}
func (Consult) effect()  {}

func (c *Allocation) onOverrides(ev Overrides) {
	if c.cfg.Consult {
		if !c.open || ev.Round != c.round {
			return
		}
		c.open = false
	}
	c.chosen = maps.Clone(ev.Homes)
	c.beat = c.now
}

// override returns the member that a shard's override names, if it is fit.
func (c *Allocation) override(s int, fit []Member) (Member, bool) {
	name := c.chosen[s]
	if name == "" {
		return Member{}, false
	}
	i := slices.IndexFunc(fit, func(m Member) bool { return m.ID == name || m.Address == name })
	if i < 0 {
		return Member{}, false
	}
	return fit[i], true
}

// consult asks for overrides when the set of fit members has changed, and every Again.
func (c *Allocation) consult(fit []Member) {
	if !c.cfg.Consult || c.open || slices.Equal(c.consulted, fit) &&
		c.now.Before(c.asked.Add(c.cfg.Again)) {
		return
	}
	c.round++
	c.open, c.asked, c.consulted = true, c.now, slices.Clone(fit)
	homes := make([]Member, len(c.table.entries))
	for s, a := range c.table.entries {
		homes[s] = a.Home
	}
	c.emit(Consult{Round: c.round, Hosts: slices.Clone(fit), Homes: homes})
}

// undecided reports whether shards without a home still wait for an answer.
func (c *Allocation) undecided() bool {
	return c.open && c.now.Before(c.asked.Add(c.cfg.Answer))
}

// grant moves shards to the homes of their overrides once they have arrived at their present ones,
// and returns how many more may be moved.
func (c *Allocation) grant(fit []Member, at []Member, room int) int {
	for s, a := range c.table.entries {
		if to, ok := c.override(s, fit); ok && room > 0 && at[s] == a.Home && a.Home != to &&
			!c.onTrial(to) {
			c.assign(s, to)
			room--
		}
	}
	return room
}
