package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/singleton/internal/core"
)

// preference is a member's configuration: it prefers hosts of the newest version, then those with
// the role, then the oldest.
type preference struct{ newest, role bool }

// rank is larger for a better member.
func (p preference) rank(n *node) (rank int) {
	if p.newest {
		rank = 2 * n.version
	}
	if p.role && n.inside {
		rank++
	}
	return rank
}

// best returns the best of members that are sorted by age.
func (p preference) best(byAge []*node) *node {
	best := byAge[0]
	for _, n := range byAge {
		if p.rank(n) > p.rank(best) {
			best = n
		}
	}
	return best
}

// order sorts members by this preference; nil if there is none.
func (p preference) order(w *world, byAge []core.Member) []core.Member {
	if p == (preference{}) {
		return nil
	}
	rank := func(m core.Member) int {
		return p.rank(w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.me() == m })])
	}
	out := slices.Clone(byAge)
	slices.SortStableFunc(out, func(a, b core.Member) int { return rank(b) - rank(a) })
	return out
}

// equip gives a process its version, role and preference. In some histories all members have one
// preference, in others each has its own.
func (w *world) equip(n *node) {
	if !w.prefer {
		return
	}
	pick := func(what string, most int) int {
		return w.Number(fmt.Sprintf("%s-%d-%d", what, n.i, n.incarnation), 0, most)
	}
	n.version, n.inside = pick("version", 2), pick("role", 1) == 1
	n.wants = w.nodes[0].wants
	if n.i == 0 && n.incarnation == 1 || !w.opt.calm && w.Chance("each-its-own", 0.3) {
		n.wants = preference{newest: pick("newest", 1) == 1, role: pick("prefers-role", 1) == 1}
	}
}

// TestSimulation_OneMovePerChange plays seeded histories of a cluster whose members all have the
// same preference and are restarted one after another, gracefully or not, with other versions and
// roles. The network delays messages but loses none. In each history, each change starts at most
// one instance, and starts one only if the host has left or the new member is better; it is soon at
// the right member, and stays there.
func TestSimulation_OneMovePerChange(t *testing.T) {
	sim.Run(t, sim.Seeds{First: seeds.First, Count: seeds.Count, Whole: seeds.Whole},
		func(s *sim.World) {
			newWorld(s, options{prompt: true, calm: true}).upgrades()
		})
}

func (w *world) upgrades() {
	w.Loss, w.Late = 0, 0
	w.Eventually(ttl+grace+5*time.Second, "settled at first", w.settled)
	if w.starts != 1 {
		w.Fail("%d instances at the cold start", w.starts)
	}
	for round := range w.Number("rounds", 1, 6) {
		if w.Failed() {
			return
		}
		i := w.Number(fmt.Sprint("restarted-", round), 0, len(w.nodes)-1)
		n, host, starts := w.nodes[i], w.host(), w.starts
		if w.Chance(fmt.Sprint("graceful-", round), 0.7) {
			n.close()
			w.Eventually(handOver+5*time.Second, "closed", func() bool { return n.closed })
		}
		n.crash()
		w.Eventually(2*ttl+2*handOver+grace+5*time.Second, "settled at the right member", w.settled)
		w.Until(10 * time.Second)
		switch now := w.host(); {
		case w.Failed():
		case !w.settled():
			w.Fail("not settled there any more: states %v", w.states())
		case w.starts > starts+2, w.starts > starts+1 && (n != host || n != now):
			w.Fail("%d instances after one change", w.starts-starts)
		case w.starts > starts && n != host && n != now:
			w.Fail("the instance has moved although neither its host nor the best member has changed")
		}
	}
}
