package core

import (
	"cmp"
	"slices"
)

// rebalance moves shards for a better distribution. It first moves shards to the homes of their
// overrides. It moves the others from the home with the most shards to the one with the fewest,
// until these differ by at most Config.Spread, or, with Config.Rendezvous, to the home given by
// rendezvous hashing. It waits while the view has changed recently or a member cannot host, and
// allows at most Config.Moves shards that have not arrived. While versions of the application
// differ, it moves shards only to homes that users have named: the members of the older version
// will leave.
func (c *Allocation) rebalance() {
	fit := c.hosts()
	fails := func(m Member) bool { return !c.fit(m, false) }
	if c.cfg.Moves == 0 || len(fit) == 0 || slices.ContainsFunc(c.view, fails) ||
		c.now.Before(c.changed.Add(c.cfg.Stable)) || c.cfg.Consult && len(c.newest) > 0 {
		return
	}
	at := c.active(fit)
	arrived := map[Member][]int{} // shards, by home
	load := map[Member]int{}
	room := c.cfg.Moves
	for s, a := range c.table.entries {
		load[a.Home]++
		if at[s] == a.Home {
			arrived[a.Home] = append(arrived[a.Home], s)
		} else {
			room--
		}
	}
	room = c.grant(fit, at, room)
	switch {
	case c.cfg.Consult, len(c.newest) > 0:
		return // shards that the function does not name stay where they are
	case c.cfg.Rendezvous:
		c.gather(fit, at, room)
		return
	}
	takers := slices.DeleteFunc(slices.Clone(fit), c.onTrial)
	for m := range arrived {
		arrived[m] = slices.DeleteFunc(arrived[m], func(s int) bool {
			_, ok := c.override(s, fit)
			return ok
		})
	}
	for ; room > 0 && len(takers) > 0; room-- {
		most := slices.MaxFunc(fit, c.by(load))
		least := slices.MinFunc(takers, c.by(load))
		last := len(arrived[most]) - 1
		if load[most]-load[least] <= max(1, c.cfg.Spread) || last < 0 {
			return
		}
		c.assign(arrived[most][last], least)
		arrived[most] = arrived[most][:last]
		load[most]--
		load[least]++
		takers = slices.DeleteFunc(takers, c.onTrial)
	}
}

// gather moves shards that have arrived elsewhere to the homes given by rendezvous hashing.
func (c *Allocation) gather(fit []Member, at []Member, room int) {
	for s, a := range c.table.entries {
		if _, ok := c.override(s, fit); ok {
			continue
		}
		if to := rendezvous(s, fit); room > 0 && at[s] == a.Home && a.Home != to &&
			!c.onTrial(to) {
			c.assign(s, to)
			room--
		}
	}
}

// choose returns a home for a shard that has none. Members of the newest version come first, so
// that the shard does not move again during the update.
func (c *Allocation) choose(s int, fit []Member, load map[Member]int) Member {
	if to, ok := c.override(s, fit); ok {
		return to
	}
	if len(c.newest) > 0 {
		newest := slices.DeleteFunc(slices.Clone(fit), func(m Member) bool {
			return !slices.Contains(c.newest, m)
		})
		if len(newest) > 0 {
			fit = newest
		}
	}
	if c.cfg.Rendezvous {
		return rendezvous(s, fit)
	}
	return slices.MinFunc(fit, c.by(load))
}

// by orders members by their number of shards. Members with equal numbers are in another order for
// each type, so that one member does not get the odd shard of every type.
func (c *Allocation) by(load map[Member]int) func(a, b Member) int {
	return func(a, b Member) int {
		return cmp.Or(load[a]-load[b], cmp.Compare(weight(c.odd, a), weight(c.odd, b)))
	}
}

// rendezvous returns the member with the highest weight for a shard. When a member joins or leaves,
// only the shards that it gets or had move, and equal shards of several types are on the same
// member. The weight depends on the address, which a restarted member keeps.
func rendezvous(s int, fit []Member) Member {
	return slices.MaxFunc(fit, func(a, b Member) int {
		return cmp.Compare(weight(uint64(s), a), weight(uint64(s), b))
	})
}

// weight is that of a member among others, for a shard or a type.
func weight(of uint64, m Member) uint64 { return scatter(hash(m.Address) ^ scatter(of)) }

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
