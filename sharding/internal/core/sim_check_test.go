package core_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/concord-go/concord/sharding/internal/core"
)

func (w *world) gone(e *entity) {
	w.alive[e.name] = slices.DeleteFunc(w.alive[e.name], func(x *entity) bool { return x == e })
}

// oneAlive holds after every step, in true time.
func (w *world) oneAlive() error {
	for i := range w.opt.entities * w.opt.shards {
		valid, id := 0, strconv.Itoa(i)
		for _, e := range w.alive[id] {
			n := e.h.n
			if e.stopsNow && e.busy && e.since < n.woke {
				continue // the handler ran when the node fell asleep: only the token protects
			}
			counts := e.h.gen == n.gen && n.validUntil != 0 && w.Elapsed() < n.validUntil
			if counts || !n.asleep {
				valid++
			}
			h, ok := w.store.holder(e.h.s)
			if mine := ok && h.member == n.me(); !n.asleep && !mine {
				return fmt.Errorf("entity %s lives at %v, which does not hold the lease",
					id, n.me())
			}
		}
		if valid > 1 {
			return fmt.Errorf("two live incarnations of entity %s", id)
		}
	}
	return nil
}

// tablesGrow checks that tables only grow. It also records since when each shard has not been
// assigned to a member.
func (w *world) tablesGrow() error {
	for _, n := range w.nodes {
		for s := range w.opt.shards {
			v := n.region.Home(s).Version
			if v.Less(n.heard[s]) {
				return fmt.Errorf("%v goes back from %v to %v", n.me(), n.heard[s], v)
			}
			if n.heard[s].Less(v) {
				n.heard[s], n.not[s] = v, w.Elapsed()
			}
			if waits := n.outs[s].Len(); waits > buffer {
				return fmt.Errorf("%d messages wait at %v", waits, n.me())
			}
		}
	}
	return nil
}

// prompt checks that a member stops waiting in time for the lease of a shard that is not assigned
// to it any more.
func (w *world) prompt() error {
	now := w.Elapsed()
	for _, n := range w.nodes {
		if !n.up || n.asleep || now <= n.woke+1000*ms {
			continue
		}
		for s := range w.opt.shards {
			phase, _ := n.region.Phase(s)
			waits := phase == core.Waiting || phase == core.Acquiring
			if waits && n.region.Home(s).Home != n.me() && now > n.not[s]+1000*ms {
				return fmt.Errorf("%v still waits for shard %d, which is another's", n.me(), s)
			}
		}
	}
	return nil
}

func (w *world) handle(e *entity, m message) {
	if m.delivery != nil {
		w.handleDelivery(e, m)
	} else if w.handled[m.messageID] {
		w.Fail("a message is handled twice: %v", m)
	}
	w.handled[m.messageID] = true
	o := orderID{m.origin, m.entity}
	if m.delivery == nil && w.order[o] >= m.n {
		w.Fail("a message is handled after a later one: %v after %d", m, w.order[o])
	}
	w.order[o] = max(w.order[o], m.n)
	if e.token < w.tokens[e.h.s] {
		w.Fail("tokens of handled messages fall: shard %d, %d after %d", e.h.s, e.token,
			w.tokens[e.h.s])
	}
	w.tokens[e.h.s] = max(e.token, w.tokens[e.h.s])
	if w.opt.remember && w.known[e.name] == 0 && !e.forgets {
		w.Fail("entity %s handles a message before a majority remembers it", e.name)
	}
	w.stat.handled++
}

// recalled reports whether every remembered entity is alive, if its shard has a home.
func (w *world) recalled() error {
	for i := range w.opt.entities * w.opt.shards {
		id := strconv.Itoa(i)
		if h, ok := w.store.holder(i % w.opt.shards); ok && w.known[id] > 0 &&
			len(w.alive[id]) == 0 {
			return fmt.Errorf("liveness: remembered entity %s does not live at %v", id, h.member)
		}
	}
	return nil
}

// unsettled returns why not every shard has one home that all regions in reach of the coordinator
// know, or "".
func (w *world) unsettled() string {
	h, ok := w.store.holder(coordName)
	if !ok {
		return "nobody holds the coordinator's lease"
	}
	c := w.node(h.member)
	if !c.up || c.me() != h.member || c.alloc == nil {
		return "the coordinator's lease is held by nobody alive"
	}
	for s := range w.opt.shards {
		if why := w.astray(c, s); why != "" {
			return fmt.Sprintf("shard %d: %s", s, why)
		}
	}
	return ""
}

func (w *world) astray(c *node, s int) string {
	a := c.alloc.Home(s)
	if a.Version.N == 0 || !c.sees(a.Home) || w.IsCut(c.i, w.node(a.Home).i) {
		return "assigned to nobody in view"
	}
	if to := w.mayOverride(c, s); to != nil && to.me() != a.Home {
		return fmt.Sprintf("at %v, and not at %v, its override", a.Home, to.me())
	}
	home := w.node(a.Home)
	if phase, _ := home.region.Phase(s); !home.up || home.me() != a.Home || phase != core.Running {
		return fmt.Sprintf("%v at its home %v", phase, a.Home)
	}
	if h := home.hosts[s]; w.opt.remember && (!h.recalled || len(h.writes) > 0) {
		return "its home waits for the store of remembered entities"
	}
	for _, m := range c.seen.Members {
		o := w.node(m)
		if w.IsCut(c.i, o.i) {
			continue // it is cut off
		}
		if o.region.Home(s).Version != a.Version {
			return "tables differ"
		}
		if o.outs[s].Len() > 0 {
			return fmt.Sprintf("messages wait at %v", m)
		}
		if phase, _ := o.region.Phase(s); m != a.Home &&
			(phase == core.Running || phase == core.Flushing) {
			return "two regions host it"
		}
	}
	return ""
}
