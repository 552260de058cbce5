package core

import (
	"maps"
	"slices"
	"time"
)

// wishes are homes that somebody else has chosen: a replicated table that users write, or a function of theirs. A wish
// names a member by id or address. It counts while that member is fit, and else as if there were none.
type wishes struct {
	chosen map[int]string // by shard

	round     uint64
	open      bool // a Consult has not been answered
	asked     time.Time
	consulted []Member // who was fit then
}

// Wishes brings homes that somebody else has chosen. They replace those before. Round is that of the Consult that is
// answered.
type Wishes struct {
	Round uint64
	Homes map[int]string
}

// Consult asks for Wishes: what a function of the user says of these hosts and homes. It is answered once, however late;
// until then there is no other one.
type Consult struct {
	Round uint64
	Hosts []Member
	Homes []Member // by shard; the zero Member: none
}

func (Wishes) event()   {}
func (Consult) effect() {}

func (c *Allocation) onWishes(ev Wishes) {
	if c.cfg.Consult {
		if !c.open || ev.Round != c.round {
			return
		}
		c.open = false
	}
	c.chosen = maps.Clone(ev.Homes)
	c.beat = c.now
}

// wished returns the member that a shard is wished to be at, if it is fit.
func (c *Allocation) wished(s int, fit []Member) (Member, bool) {
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

// consult asks for wishes when other members are fit than before, and now and then.
func (c *Allocation) consult(fit []Member) {
	if !c.cfg.Consult || c.open || slices.Equal(c.consulted, fit) && c.now.Before(c.asked.Add(c.cfg.Again)) {
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

// undecided tells that shards without a home wait for an answer, but not for long.
func (c *Allocation) undecided() bool {
	return c.open && c.now.Before(c.asked.Add(c.cfg.Answer))
}

// grant moves shards that have arrived elsewhere than wished, and returns how many more may be moved.
func (c *Allocation) grant(fit []Member, at map[int]Member, room int) int {
	for s, a := range c.table.entries {
		if to, ok := c.wished(s, fit); ok && room > 0 && at[s] == a.Home && a.Home != to {
			c.assign(s, to)
			room--
		}
	}
	return room
}
