package core_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/sharding/internal/core"
)

var seeds = sim.Flags(usualSeeds)

// acts are the events of a history; the first two are not faults.
var acts = []string{"move", "leave", "crash", "crash", "pause", "pause", "split", "one-way",
	"away", "outage", "forgetful", "amnesia"}

// kinds returns how many of the acts a history has. Those of the store of remembered entities are
// the last.
func (w *world) kinds() int {
	switch {
	case w.opt.planned:
		return 2
	case w.opt.remember:
		return len(acts)
	}
	return len(acts) - 2
}

func (w *world) makeUp() {
	r, kinds := w.Rand(), w.kinds()
	if w.opt.explore {
		w.chooseActs(kinds)
		return
	}
	if w.opt.restless {
		w.makeUpMoves()
		return
	}
	share := 0.3 + 0.7*r.Float64()
	for k := range w.opt.acts {
		at := startUp + time.Duration(k)*w.opt.every
		if r.Float64() >= share {
			continue
		}
		w.makeUpAct(at, r.IntN(kinds))
	}
}

// makeUpAct makes up one act of a kind, which is an index of acts.
func (w *world) makeUpAct(at time.Duration, of int) {
	r := w.Rand()
	kind, i := acts[of], r.IntN(w.opt.nodes)
	switch kind {
	case "move":
		if w.opt.override != nobody {
			w.Act(at, "override", r.IntN(w.opt.shards), r.IntN(w.opt.nodes+2))
			return
		}
		w.Act(at, kind, r.IntN(w.opt.shards), i)
	case "crash":
		w.Act(at, kind, i, "for", []time.Duration{time.Second, 6 * time.Second}[r.IntN(2)])
	case "pause":
		w.Act(at, kind, i, "for", []time.Duration{1500 * ms, 7 * time.Second}[r.IntN(2)])
	default:
		w.Act(at, kind, i)
	}
}

// chooseActs chooses the act at each time by chance; no act is the harmless choice.
func (w *world) chooseActs(kinds int) {
	for k := range w.opt.acts {
		c := w.Number(fmt.Sprint("act", k), 0, kinds*w.opt.nodes)
		if c == 0 {
			continue
		}
		w.disturbed = true
		at, kind, i := startUp+time.Duration(k)*w.opt.every, acts[(c-1)/w.opt.nodes],
			(c-1)%w.opt.nodes
		// of two equal acts, one is long
		length := time.Second + time.Duration((c-1)/w.opt.nodes%2)*5500*ms
		switch kind {
		case "move":
			w.Act(at, kind, 0, i)
		case "crash", "pause":
			w.Act(at, kind, i, "for", length)
		default:
			w.Act(at, kind, i)
		}
	}
}

// learn defines how acts are carried out.
func (w *world) learn() {
	w.Can("override", func(a sim.Args) { w.override(a.Int(0, w.opt.shards), a.Int(1, len(w.nodes)+2)) })
	for verb, do := range map[string]func(*node, sim.Args){
		"leave": (*node).leave, "crash": (*node).crashes, "pause": (*node).pauses,
		"split":     (*node).splits,
		"forgetful": (*node).forgets, "amnesia": (*node).amnesia,
		"one-way": (*node).oneWay, "away": (*node).loseStore, "outage": (*node).outage,
	} {
		w.Can(verb, func(a sim.Args) {
			if i := a.Int(0, len(w.nodes)); !w.Failed() && w.nodes[i].up {
				do(w.nodes[i], a)
			}
		})
	}
	w.Can("move", func(a sim.Args) {
		s, to := a.Int(0, w.opt.shards), a.Int(1, len(w.nodes))
		for _, n := range w.nodes {
			if n.up && n.alloc != nil && w.nodes[to].up {
				n.run(func() {
					if n.alloc != nil {
						n.stepAlloc(core.Move{Shard: s, To: w.nodes[to].me()})
					}
				})
			}
		}
	})
}

func (n *node) hurt(d time.Duration) {
	n.w.trouble[n.i] = max(n.w.trouble[n.i], n.w.Elapsed()+d)
}

// leave carries out: leave NODE. The node stops hosting; with faults, it comes back as another
// incarnation. The last remaining node does not leave, because no shard could be served then.
func (n *node) leave(sim.Args) {
	if !slices.ContainsFunc(n.w.nodes, func(o *node) bool { return o != n && o.up && !o.leaving }) {
		return
	}
	n.leaving = true
	n.hurt(3 * time.Second)
	n.run(func() { n.step(core.Leave{}) })
	if n.w.opt.planned {
		return
	}
	inc := n.inc
	n.w.After(5*time.Second, func() { // its shards have gone by now
		if n.up && n.inc == inc {
			n.comesBack(time.Second)
		}
	})
}

func (n *node) crashes(a sim.Args) { n.comesBack(a.Span(2)) }

func (n *node) comesBack(after time.Duration) {
	w := n.w
	n.hurt(6 * time.Second)
	n.crash()
	w.After(600*ms, w.refresh)
	w.After(after, func() {
		n.boot()
		w.show(n, func(o *node) bool { return !w.IsCut(n.i, o.i) && !w.IsCut(o.i, n.i) })
		w.After(100*ms, w.refresh)
	})
}

func (n *node) pauses(a sim.Args) {
	w, d := n.w, a.Span(2)
	n.hurt(d + 3*time.Second)
	n.paused, n.asleep = max(n.paused, w.Elapsed()+d), true
	inc := n.inc
	w.After(n.paused-w.Elapsed(), func() {
		if w.Elapsed() < n.paused || !n.up || n.inc != inc || !n.asleep {
			return
		}
		n.woke, n.asleep = w.Elapsed(), false
		late := n.backlog
		n.backlog = nil
		for _, f := range late {
			if n.up && n.inc == inc {
				f()
			}
		}
	})
	if d < ttl {
		return
	}
	w.After(3*time.Second, func() { // it is considered dead meanwhile
		for _, o := range w.nodes {
			if o != n && w.Elapsed() < n.paused {
				w.show(o, func(x *node) bool {
					return x != n && !w.IsCut(o.i, x.i) && !w.IsCut(x.i, o.i)
				})
			}
		}
	})
	w.After(d+1500*ms, w.refresh)
}

func (n *node) splits(sim.Args) {
	for _, o := range n.w.nodes {
		o.hurt(9 * time.Second)
	}
	n.w.split(n.i, 9*time.Second)
}

// oneWay carries out: one-way NODE. The node does not reach the next one, and no view shows it.
func (n *node) oneWay(sim.Args) {
	o := n.w.nodes[(n.i+1)%len(n.w.nodes)]
	n.hurt(7 * time.Second)
	o.hurt(7 * time.Second)
	n.w.Cut(n.i, o.i)
	n.w.After(7*time.Second, func() { n.w.Mend(n.i, o.i) })
}

func (n *node) loseStore(sim.Args) {
	n.hurt(8 * time.Second)
	n.w.store.away[n.i] = n.w.Elapsed() + 8*time.Second
}

func (n *node) outage(sim.Args) {
	for _, o := range n.w.nodes {
		o.hurt(6 * time.Second)
		n.w.store.away[o.i] = max(n.w.store.away[o.i], n.w.Elapsed()+3*time.Second)
	}
}

// forgets carries out: forgetful NODE. The node does not reach the store of remembered entities.
func (n *node) forgets(sim.Args) {
	n.hurt(12 * time.Second)
	n.w.forgetful[n.i] = max(n.w.forgetful[n.i], n.w.Elapsed()+8*time.Second)
}

// forgetAll lets all entities here ask to be forgotten.
func (n *node) forgetAll() {
	for i := range n.w.opt.entities * n.w.opt.shards {
		h := n.hosts[i%n.w.opt.shards]
		if e := h.entities[strconv.Itoa(i)]; e != nil && e.slot == h.slot && !e.ending {
			e.forgets = true
			h.step(core.Passivate{ID: e.name, Run: e.run, Forget: true})
		}
	}
}

// amnesia carries out: amnesia NODE. No node reaches it.
func (n *node) amnesia(sim.Args) {
	for _, o := range n.w.nodes {
		o.hurt(9 * time.Second)
		n.w.forgetful[o.i] = max(n.w.forgetful[o.i], n.w.Elapsed()+5*time.Second)
	}
}

const startUp = 2500 * ms

// history is one run: a calm start, acts and faults, and then a complete recovery.
func history(opt options) func(*sim.World) { return func(s *sim.World) { play(newWorld(s, opt)) } }

func play(w *world) {
	w.Faults = sim.Faults{Delay: 2 * ms}
	w.learn()
	w.makeUp()
	lasting := ""
	if !w.opt.planned && w.opt.nodes > 2 { // each of these faults stays in a third of the histories
		kinds := []string{"", "split", "one-way"}
		if w.opt.remember {
			kinds = append(kinds, "forgetful")
		}
		lasting = kinds[w.Number("lasting", 0, len(kinds)-1)]
	}
	w.Until(startUp - ms)
	if why := w.unsettled(); why != "" {
		w.Fail("does not start: %s", why)
	}
	w.Faults = w.faults()
	w.acting = true
	w.Until(time.Duration(w.opt.acts)*w.opt.every + ms)
	w.Calm()
	w.calmDown(lasting)
	within := 25 * time.Second
	if lasting == "forgetful" {
		within = 50 * time.Second
	}
	w.Eventually(within, "settled", func() bool { return w.unsettled() == "" })
	if w.Failed() {
		return
	}
	w.acting = false
	w.Until(3 * time.Second)
	w.Eventually(10*time.Second, "delivered", w.allDelivered)
	w.finish()
}

func (w *world) faults() sim.Faults {
	if w.opt.planned {
		return sim.Faults{Delay: 2 * ms, Duplicate: w.share("double", 0.2),
			Late: w.share("late", 0.2), Lateness: 300 * ms}
	}
	return sim.Faults{Delay: 2 * ms, Jitter: w.Span("jitter", 0, 20*ms), Loss: w.share("loss", 0.3),
		Duplicate: w.share("double", 0.2), Late: w.share("late", 0.2), Lateness: 4 * time.Second}
}

// calmDown ends the faults, except one that may last.
func (w *world) calmDown(lasting string) {
	for _, n := range w.nodes {
		if n.paused > w.Elapsed() {
			w.Until(n.paused - w.Elapsed() + ms)
		}
	}
	switch { // everything with a duration ends
	case w.opt.explore && !w.disturbed:
		w.Until(w.Lateness + 500*ms)
	default:
		w.Until(10 * time.Second)
	}
	w.refresh()
	w.Until(ms)
	switch lasting {
	case "split":
		w.split(int(w.Elapsed()/(900*ms))%len(w.nodes), 0)
		w.Until(2 * time.Second)
	case "forgetful": // and the entities there stop
		i := int(w.Elapsed()/(900*ms)) % len(w.nodes)
		w.acting, w.forgetful[i] = false, time.Hour
		w.nodes[i].hurt(time.Hour)
		w.nodes[i].run(w.nodes[i].forgetAll)
		w.Until(ms)
		for e := range w.opt.entities * w.opt.shards {
			w.nodes[i].say(e)
		}
		w.Until(4 * time.Second)
	case "one-way": // away from the coordinator, and no view shows it
		w.Until(8 * time.Second)
		if h, ok := w.store.holder(coordName); ok {
			c := w.node(h.member)
			w.Cut(c.i, (c.i+1)%len(w.nodes))
			w.Until(config(1).Fit + time.Second)
		}
	}
}

// finish checks that every member the coordinator sees is served, and that a planned history has
// lost nothing.
func (w *world) finish() {
	if w.Failed() {
		return
	}
	if w.opt.planned && w.stat.handled != w.stat.sent {
		w.Fail("planned: %d messages of %d are lost", w.stat.sent-w.stat.handled, w.stat.sent)
	}
	if err := w.recalled(); (w.opt.remember || w.opt.keep) && err != nil {
		w.Fail("%v", err)
	}
	h, _ := w.store.holder(coordName)
	c := w.node(h.member)
	if w.opt.keep { // after a long silence, the first message may go to an ended tenure and be lost
		w.probe(c)
		w.Until(2500 * ms)
	}
	before := w.stat.handled
	probes := w.probe(c)
	w.Until(2500 * ms)
	if got := w.stat.handled - before; got < probes {
		w.Fail("probes are not handled: %d of %d", probes-got, probes)
	}
	if err := w.recalled(); (w.opt.remember || w.opt.keep) && err != nil {
		w.Fail("%v", err)
	}
	w.concluded(c)
	w.movable(c)
}

// movable checks that the coordinator at c knows which shards the members that it hears have: it
// moves a shard on request only if the home has reported it.
func (w *world) movable(c *node) {
	hears := func(m core.Member) bool {
		return w.node(m).up && !w.node(m).leaving && w.Elapsed() < c.contact(m).fit
	}
	for s := range w.opt.shards {
		home := c.alloc.Home(s).Home
		to := slices.IndexFunc(c.seen.Members, func(m core.Member) bool {
			return m != home && hears(m) && w.forgetful[w.node(m).i] <= w.Elapsed()
		})
		phase, _ := w.node(home).region.Phase(s)
		if to < 0 || phase != core.Running || !hears(home) {
			continue
		}
		move := core.Move{Shard: s, To: c.seen.Members[to]}
		if len(homes(c.alloc.Step(w.Now(), move))) == 0 {
			w.Fail("the coordinator does not know that %v has shard %d", home, s)
		}
	}
}

// probe sends a message to all entities from every member that the coordinator at c sees.
func (w *world) probe(c *node) (probes int) {
	for _, m := range c.seen.Members {
		if o := w.node(m); !w.IsCut(c.i, o.i) {
			for e := range w.opt.entities * w.opt.shards {
				o.say(e)
				probes++
			}
		}
	}
	return probes
}

// part returns the first of n parts of the seeds, and at least one seed: the command that a failure
// names plays one.
func part(n int) sim.Seeds {
	s := *seeds
	s.Count = max(1, s.Count/n)
	return s
}

// simulate runs seeds of one kind, and logs statistics.
func simulate(t *testing.T, opt options, s sim.Seeds) {
	var handled, moves, moved, lost, orphans, delivered, again, failed atomic.Int64
	sim.Run(t, s, func(w *sim.World) {
		x := newWorld(w, opt)
		play(x)
		handled.Add(int64(x.stat.handled))
		moves.Add(int64(x.stat.moves))
		moved.Add(int64(x.stat.moved))
		lost.Add(int64(x.stat.lost))
		orphans.Add(int64(x.stat.orphans))
		delivered.Add(int64(x.stat.delivered))
		again.Add(int64(x.stat.again))
		failed.Add(int64(x.stat.failed))
	})
	if opt.deliver {
		t.Logf("%d deliveries confirmed, %d handled again", delivered.Load(), again.Load())
	}
	t.Logf("%d messages handled, %d assignments, %d moves of a lease to another member, %d sessions lost, %d regions on the wrong side, calls failed under %d tenures",
		handled.Load(), moves.Load(), moved.Load(), lost.Load(), orphans.Load(), failed.Load())
}

// Nothing fails, and no delay exceeds a timeout: no message is lost, and no lease is requested in
// vain.
func TestSimulation_PlannedMovesLoseNothing(t *testing.T) { simulate(t, planned, *seeds) }

// The histories have crashes, pauses, partitions, one-way cuts, outages of the store and lost
// messages: see the invariants in sim_check_test.go.
func TestSimulation_NeverTwoAlive(t *testing.T) { simulate(t, chaos, *seeds) }

// Entities that have received a message live on wherever their shard moves, unless they ask to be
// forgotten.
func TestSimulation_Remembers(t *testing.T) {
	s := part(2)
	simulate(t, rememberingPlanned, s)
	simulate(t, remembering, s)
	simulate(t, rememberingPaced, part(8))
}

// Deliveries are handled at least once, as long as the member that sends them lives.
func TestSimulation_Delivers(t *testing.T) {
	s := part(2)
	simulate(t, deliveringPlanned, s)
	simulate(t, delivering, s)
}

// More entities receive messages than may run.
func TestSimulation_OfALimit(t *testing.T) {
	simulate(t, tight, part(4))
}

// A table has overrides for homes, with all other faults.
func TestSimulation_Overrides(t *testing.T) {
	s := part(4)
	simulate(t, overridingPlanned, s)
	simulate(t, overriding, s)
}

// A function chooses homes; it is late, never answers, or names members that do not exist.
func TestSimulation_Consults(t *testing.T) {
	s := part(4)
	simulate(t, consultPlanned, s)
	simulate(t, consulting, s)
}

// Each shard has one entity, which runs wherever its shard moves, although it stops, fails and asks
// to be forgotten.
func TestSimulation_Daemons(t *testing.T) {
	s := part(4)
	simulate(t, keepingPlanned, s)
	simulate(t, keeping, s)
}

func TestSimulation_OfFiveMembers(t *testing.T) {
	simulate(t, large, part(4))
}

var deviations = flag.Int("deviations", usualDeviations,
	"from the harmless history, in an exploration")

// Two members, one shard: every history with a bounded number of deviations from the harmless one.
func TestExplore_SmallWorlds(t *testing.T) {
	for name, opt := range map[string]options{"planned": tinyPlanned, "chaos": tiny} {
		t.Run(name, func(t *testing.T) {
			e := sim.Explore(t, sim.Bounds{Deviations: *deviations}, history(opt))
			if !t.Failed() && (e.Within < *deviations || e.Points < 30) {
				t.Error("not explored")
			}
		})
	}
}

func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	for _, opt := range []options{planned, chaos, delivering, overriding, consulting} {
		sim.Run(t, sim.Seeds{First: 1, Count: min(usualSeeds/4, 60), Twice: true}, history(opt))
	}
}
