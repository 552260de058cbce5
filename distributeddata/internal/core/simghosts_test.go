package core

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/sim"
)

// Members with two processes: one that was presumed dead and still runs, and one that is restored
// from a snapshot.

// ghost begins another incarnation of a member while the present one continues for a while: ghost
// MEMBER for TIME. The member thereby fails, as if it had been killed.
func (s *play) ghost(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.frozen != nil || sl.leaving != 0 || sl.core == nil || !s.mayFail(sl) {
		return
	}
	s.happened["incarnations beside the next"]++
	g := *sl
	s.ghosts = append(s.ghosts, &g)
	s.arm(&g, g.core.NextWake())
	sl.core, sl.open, sl.mine = nil, nil, nil
	s.start(sl)
	s.w.After(a.Span(2), func() { s.vanish(&g) })
}

// restart begins the next incarnation of a member whose place another process of its name has
// taken, as an operator would do after the alarm.
func (s *play) restart(sl *slot) {
	if sl != s.slots[sl.i] || s.flux != nil {
		return
	}
	core := sl.core
	s.w.After(time.Second, func() {
		if sl.core == core {
			s.goAgain(sl, 0)
		}
	})
}

func (s *play) vanish(g *slot) {
	if g.core != nil {
		s.end(g)
	}
}

func (s *play) endGhosts() {
	for _, g := range s.ghosts {
		s.vanish(g)
	}
}

// haunt lets a client update an earlier incarnation: haunt MEMBER LEVEL OP, OP …
func (s *play) haunt(a sim.Args) {
	i := a.Int(0, len(s.slots))
	for _, g := range s.ghosts {
		if g.i == i && g.core != nil {
			s.updateAt(a, g)
			return
		}
	}
}

func (s *play) makeGhosts(r *rand.Rand, keys int) {
	for range 1 + r.IntN(3) {
		t, member := warm+s.w.Moment(span), r.IntN(players)
		s.w.Act(t, "ghost", member, "for", time.Duration(r.IntN(12000))*time.Millisecond)
		for range r.IntN(8) {
			t += time.Duration(r.IntN(1500)) * time.Millisecond
			s.w.Act(t, "haunt", member, []string{"local", "majority", "majority", quiet}[r.IntN(4)],
				opsText(randomOps(r, s.letters, keys)))
		}
	}
}

// Other members' reactions to a restored machine are the rarest faults: a separate campaign with
// -restored 1 finds more of them.
var restored = flag.Float64("restored", 1./6,
	"the share of histories in which a machine is restored from a snapshot")

// image is a snapshot of the machine on which a member runs.
type image struct {
	core  *Core
	shows names
	told  map[string]string
	name  string
	skew  time.Duration

	misled bool
}

// freeze takes a snapshot of the machine of a member: freeze MEMBER.
func (s *play) freeze(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || sl.restored || sl.leaving != 0 || sl.core.Gathers() {
		return
	}
	sl.frozen = &image{frozen(sl.core), sl.shows, maps.Clone(sl.told), sl.name, sl.skew, sl.misled}
}

// thaw replaces a member by the snapshot of its machine, which is used up unless it is kept: thaw
// MEMBER for TIME [keep]. The member thereby fails, as if it had been killed, and fails again when
// others notice it. From then on the history asserts only that all become equal again, that
// subscribers are notified, and that nothing acknowledged is lost, but for what the restored
// replica did since the snapshot: see doubtful.
//
// Between the restore and the moment at which others notice it, the two replicas look like one to
// all other members, and a majority read may lack what the member had acknowledged.
func (s *play) thaw(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.frozen == nil || sl.leaving != 0 || sl.core == nil || !s.mayFail(sl) {
		return
	}
	f, was := sl.frozen, sl.core.Replica()
	if shows, has := s.doubted[f.core.Replica()]; !has || f.shows.within(shows) {
		s.doubted[f.core.Replica()] = f.shows
	}
	had := sl.core.Seen().Get(f.core.Replica())
	lacks := sl.shows
	s.end(sl)
	s.thawed = true
	s.happened["snapshots restored"]++
	sl.coming = true
	if len(a.Words) < 4 {
		sl.frozen = nil
	}
	s.w.After(a.Span(2), func() {
		c := frozen(f.core)
		c.cfg.Reach = sl.burn
		sl.coming, sl.core, sl.name, sl.skew, sl.told = false, c, f.name, f.skew, maps.Clone(f.told)
		sl.misled, sl.lacks = f.misled, lacks
		sl.restored = was != c.Replica() || had > c.history.Own()
		sl.shows, sl.texts, sl.last = f.shows, map[string]*shownText{}, causal.Vector{}
		sl.wake, sl.calls, sl.fuse, sl.broke = time.Time{}, map[uint64]bool{}, 0, false
		s.w.Note("%s is what it was", sl.id())
		s.tellViews(1500 * time.Millisecond)
		s.step(sl, Wake{})
	})
}

// doubtful returns the updates that a restored replica made after its snapshot, before the restore
// or after it: one that has the number of another may be lost [R4].
func (s *play) doubtful() (out names) {
	for _, d := range s.did.deeds {
		if shows, has := s.doubted[d.by]; has && !shows.has(d.id) {
			out = out.with(d.id)
		}
	}
	return out
}

// current reports whether a member holds everything that it has ever acknowledged, and will not
// fail by itself; a restored one does not at first.
func (s *play) current(sl *slot) bool {
	return !sl.restored && !slices.ContainsFunc(sl.lacks.without(sl.shows).all(), s.acked.has)
}

func (s *play) makeSnapshots(r *rand.Rand) {
	for range 1 + r.IntN(2) {
		t, member := warm+s.w.Moment(span*2/3), r.IntN(players)
		s.w.Act(t, "freeze", member)
		for range 1 + r.IntN(2) {
			t += time.Duration(r.IntN(6000)) * time.Millisecond
			s.w.Act(t, "thaw", member, "for", time.Duration(r.IntN(300))*time.Millisecond, "keep")
			t += 300 * time.Millisecond
			for range r.IntN(3) { // its first actions
				t += time.Duration(r.IntN(300)) * time.Millisecond
				s.w.Act(t, "update", member, []string{"local", "majority", "majority",
					quiet}[r.IntN(4)], opsText(randomOps(r, "sw", 2)))
			}
		}
	}
}
