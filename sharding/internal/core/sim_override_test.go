package core_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// choice is the source of homes.
type choice int

const (
	nobody   choice = iota // the coordinator alone
	table                  // a replicated table of overrides
	function               // a user function
)

func (o options) config() core.Config {
	c := config(o.shards)
	if o.override != nobody {
		c.Moves, c.Stable = 2, 1000*ms
	}
	c.Consult, c.Again, c.Answer = o.override == function, 2000*ms, 700*ms
	return c
}

// override carries out: override SHARD MEMBER. One of the possible members does not exist, and one
// stands for removing the override.
func (w *world) override(shard, to int) {
	if w.overrides == nil {
		w.overrides = map[int]string{}
	}
	w.overrides[shard] = fmt.Sprint("n", to)
	if to > len(w.nodes) {
		delete(w.overrides, shard)
	}
	for _, n := range w.nodes {
		if n.up {
			n.after(w.quorum(), n.hearOverrides)
		}
	}
}

// hearOverrides makes the coordinator, if it is on this node, read the table of overrides.
func (n *node) hearOverrides() {
	if n.alloc != nil && n.w.opt.override == table {
		n.stepAlloc(core.Overrides{Homes: maps.Clone(n.w.overrides)})
	}
}

// consult answers the coordinator's question to the function. At times the answer is slow, missing
// or nonsense.
func (n *node) consult(e core.Consult) {
	w, alloc, late := n.w, n.alloc, 5*ms
	homes := maps.Clone(w.overrides)
	if w.acting {
		switch w.Number("function", 0, 5) {
		case 0:
			late = 600 * ms
		case 1:
			late = 3000 * ms
		case 2:
			homes = map[int]string{-1: "n0", 99: "n1", 0: "nobody"}
		case 3:
			late = time.Minute
		}
	}
	silent := late == time.Minute
	n.silent = silent
	n.after(late, func() {
		if n.alloc == alloc {
			n.silent = n.silent && !silent
			n.stepAlloc(core.Overrides{Round: e.Round, Homes: homes})
		}
	})
}

// mayOverride returns the member that the override of a shard names, if the coordinator at c can
// move the shard there.
func (w *world) mayOverride(c *node, s int) *node {
	if c.silent { // no other question is asked before the answer
		return nil
	}
	for _, o := range w.nodes {
		if w.overrides[s] != o.me().ID || !o.up || o.leaving || !c.sees(o.me()) ||
			w.IsCut(c.i, o.i) ||
			w.IsCut(o.i, c.i) {
			continue
		}
		for _, m := range c.seen.Members { // no shard moves for balance while a member cannot host
			if x := w.node(m); x.leaving || w.IsCut(c.i, x.i) || w.IsCut(x.i, c.i) {
				return nil
			}
		}
		return o
	}
	return nil
}
