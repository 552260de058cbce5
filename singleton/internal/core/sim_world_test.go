package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/singleton/internal/core"
)

// world is one seeded history in true time: members with machines and routes, an abstract lease
// service, and a network that loses and delays messages. It checks at every step that at most one
// instance is alive.
type world struct {
	*sim.World
	opt    options
	nodes  []*node
	lease  lease
	alive  map[*node]uint64 // run
	starts int
	settle time.Duration
	prefer bool // some members have a preference
}

// options break a rule, to show that the checks notice.
type options struct {
	prompt        bool // grants never come late; this breaks nothing
	calm          bool // one preference for all, and a fast store; this breaks nothing either
	earlyRelease  bool // the lease is free when the instance is told to stop
	blindStart    bool // a start does not check the lease
	overlookGrant bool // a grant that is not wanted is not released
}

const (
	ttl      = 10 * time.Second
	validity = 9 * time.Second // until then the holder believes in its lease
	stopBy   = 8 * time.Second // and is notified before
)

// newWorld picks sizes and faults. Each seed has some of them, and rarely all.
func newWorld(s *sim.World, opt options) *world {
	w := &world{World: s, opt: opt, alive: map[*node]uint64{}}
	w.Faults = sim.Faults{
		Loss: w.Fraction("loss", 0.3), Delay: time.Millisecond,
		Jitter: w.Span("jitter", 0, 30*time.Millisecond),
		Late:   w.Fraction("late", 0.1), Lateness: 5 * time.Second,
	}
	w.settle = w.Span("settle", 0, 2*time.Second)
	for i := range w.Number("members", 2, 5) {
		w.nodes = append(w.nodes, &node{w: w, i: i})
	}
	w.prefer = w.Chance("prefer", 0.4)
	for _, n := range w.nodes {
		n.boot()
		w.equip(n)
	}
	w.Always("one instance in true time", w.oneInstance)
	w.Always("no instance behind a shut gate", w.gates)
	w.Observe(w.honest)
	w.Can("split", w.split)
	w.Can("unite", w.unite)
	w.Can("stores", w.stores)
	for verb, do := range map[string]func(*node, sim.Args){
		"crash": func(n *node, _ sim.Args) { n.crash() },
		"close": func(n *node, a sim.Args) { n.close(); n.comesBack(a.Span(2)) },
		"expel": func(n *node, a sim.Args) { n.expelled(); n.comesBack(a.Span(2)) },
		"end":   func(n *node, _ sim.Args) { n.instanceEnds() },
		"tick":  func(n *node, _ sim.Args) { n.step(core.Wake{}) },
		"store": (*node).storeAway, "gate": (*node).gateShut, "sick": (*node).sickens,
		"see": (*node).sees,
	} {
		w.Can(verb, func(a sim.Args) {
			if i := a.Int(0, len(w.nodes)); !w.Failed() {
				do(w.nodes[i], a)
			}
		})
	}
	return w
}

func (w *world) oneInstance() error {
	if len(w.alive) <= 1 {
		return nil
	}
	return fmt.Errorf("%d at once, states %v", len(w.alive), w.states())
}

// gates checks that an instance stops in time when the gate of its member is shut.
func (w *world) gates() error {
	for n := range w.alive {
		if at := w.Elapsed(); at < n.shut && at > n.shutAt+hurry+validity-stopBy {
			return fmt.Errorf("member %d hosts behind a gate shut since %v", n.i, n.shutAt)
		}
	}
	return nil
}

// stores carries out "stores DIGITS away for TIME": the store is unavailable for the members with a
// 1.
func (w *world) stores(a sim.Args) {
	away := a.Word(0)
	if len(away) < len(w.nodes) {
		a.Fail("every member needs a digit")
		return
	}
	for _, n := range w.nodes {
		if away[n.i] == '1' {
			w.lease.unreachable(n, w.Elapsed()+a.Span(3))
		}
	}
}

// honest checks every message: none names a tenure that never existed, or reports a lease as free
// that its sender holds.
func (w *world) honest(from, _ int, msg any) {
	var token uint64
	switch m := msg.(type) {
	case core.Host:
		token = m.Token
	case core.Paused:
		token = m.Token
	case core.TellFree:
		token = m.Token
		if n := w.nodes[from]; w.lease.holds(n, token) && !w.opt.earlyRelease {
			w.Fail("member %d calls its own lease free", from)
		}
	}
	if token > w.lease.high {
		w.Fail("member %d speaks of tenure %d of %d", from, token, w.lease.high)
	}
}

// delay returns a short delay or, with faults, sometimes one of seconds.
func (w *world) delay(what string) time.Duration {
	d := w.Span(what, time.Millisecond, 30*time.Millisecond)
	if !w.opt.calm && w.Chance("slow-"+what, 0.05) {
		d += w.Span("slower-"+what, 0, 5*time.Second)
	}
	return d
}

// order returns all living members by age, oldest first.
func (w *world) order() []*node {
	out := slices.Clone(w.nodes)
	slices.SortFunc(out, func(a, b *node) int {
		if a.born != b.born {
			return int(a.born - b.born)
		}
		return a.i - b.i
	})
	return out
}

// view shows n those members; a member always sees itself.
func (w *world) view(n *node, see func(*node) bool) {
	v := core.View{Self: n.me()}
	for _, o := range w.order() {
		if o == n || see(o) {
			v.Hosts = append(v.Hosts, o.me())
		}
	}
	v.Preferred = n.wants.order(w, v.Hosts)
	n.step(v)
}

// apart reports whether a member does not hear another one.
func (w *world) apart(a, b *node) bool { return w.IsCut(a.i, b.i) }

// split carries out "split SIDES", where each digit is the side of a member.
func (w *world) split(a sim.Args) {
	sides := a.Word(0)
	if len(sides) < len(w.nodes) {
		a.Fail("every member needs a side")
		return
	}
	for _, x := range w.nodes {
		for _, y := range w.nodes {
			cut := sides[x.i] != sides[y.i]
			if cut && !w.apart(x, y) {
				w.Cut(x.i, y.i)
			} else if !cut {
				w.Mend(x.i, y.i)
			}
		}
		w.later(x, func() { w.view(x, func(o *node) bool { return sides[x.i] == sides[o.i] }) })
	}
}

// unite carries out "unite": the network is whole again.
func (w *world) unite(sim.Args) {
	for _, x := range w.nodes {
		for _, y := range w.nodes {
			w.Mend(x.i, y.i)
		}
		w.later(x, func() { w.view(x, func(*node) bool { return true }) })
	}
}

func (w *world) later(n *node, f func()) {
	incarnation := n.incarnation
	w.After(w.delay("view"), func() {
		if n.incarnation == incarnation {
			f()
		}
	})
}

// makeUp generates the events, of the kinds that the seed has enabled.
func (w *world) makeUp(r *rand.Rand) {
	var kinds []string
	for _, k := range []string{"crash", "close", "split", "unite", "store", "stores", "gate", "see",
		"end", "tick", "expel", "sick"} {
		if k == "unite" || r.IntN(4) > 0 {
			kinds = append(kinds, k)
		}
	}
	digits := func() string {
		side := make([]byte, len(w.nodes))
		for i := range side {
			side[i] = byte('0' + r.IntN(2))
		}
		return string(side)
	}
	quiet := r.IntN(20)
	for t := time.Duration(0); t < 100*time.Second; t += 500 * time.Millisecond {
		n := r.IntN(len(w.nodes))
		if r.IntN(20) < quiet {
			continue
		}
		switch k := kinds[r.IntN(len(kinds))]; k {
		case "split":
			w.Act(t, k, digits())
		case "unite":
			w.Act(t, k)
		case "store":
			w.Act(t, k, n, "away", "for", time.Duration(1000+r.IntN(29000))*time.Millisecond)
		case "stores":
			w.Act(t, k, digits(), "away", "for", time.Duration(1000+r.IntN(29000))*time.Millisecond)
		case "gate":
			w.Act(t, k, n, "shut", "for", time.Duration(500+r.IntN(20000))*time.Millisecond)
		case "see":
			w.Act(t, k, n, digits())
		case "close", "expel", "sick":
			w.Act(t, k, n, "for", time.Duration(500+r.IntN(20000))*time.Millisecond)
		default:
			w.Act(t, k, n)
		}
	}
}

// play plays the history: a phase with faults, and one without, in which the right member
// must have the instance in time.
func (w *world) play() {
	w.makeUp(w.Rand())
	w.Until(100 * time.Second)
	if !w.Failed() {
		w.heal()
		// TTL, one poll of a contender, hand-over, back-off, the expiry of a lost announcement, and
		// the time until a member that declined takes the instance back.
		w.Eventually(ttl+pollEvery+handOver+maxBackOff+declineFor+maxReturn+grace+time.Second,
			"settled at the right member", w.settled)
		w.Until(2 * time.Second)
		if !w.Failed() && !w.settled() {
			w.Fail("not settled there any more: states %v", w.states())
		}
	}
	if !w.Failed() {
		w.quiet()
	}
}

// heal ends all faults. Members that will not host any more are restarted, as processes are.
func (w *world) heal() {
	w.Calm()
	for _, n := range w.nodes {
		w.lease.unreachable(n, 0)
		n.shut, n.sick = 0, 0
		n.gateOpens()
		if n.final {
			n.crash()
		}
	}
	w.Until(6 * time.Second) // until late messages have arrived
	for _, n := range w.nodes {
		w.view(n, func(*node) bool { return true })
	}
	// Wait until earlier announcements, also to members not in view, are repeated or void.
	w.Until(maxBackOff + declineFor)
}

// host returns the member that should have the instance, of those that do not leave it to another
// one because instances failed there: the oldest of the members that prefer themselves, else the
// oldest.
func (w *world) host() *node {
	run := slices.DeleteFunc(w.order(), func(n *node) bool { return n.foreign })
	able := slices.DeleteFunc(slices.Clone(run), func(n *node) bool { return n.m.Failing() })
	if len(able) == 0 {
		return run[0]
	}
	for _, n := range able {
		if n.wants != (preference{}) && n.wants.best(able) == n {
			return n
		}
	}
	return able[0]
}

// settled reports whether the right member has the instance and the lease, and every route leads
// there.
func (w *world) settled() bool {
	host := w.host()
	if host.m.Failing() || len(w.alive) != 1 || w.alive[host] == 0 || w.lease.holder != host ||
		w.lease.token != host.m.Token() {
		return false
	}
	for _, n := range w.nodes {
		h, token, ok := n.r.Host()
		if !n.foreign && (!ok || h != host.me() || token != host.m.Token()) {
			return false
		}
	}
	return true
}

// quiet checks that no lease is held after all members have closed.
func (w *world) quiet() {
	for _, n := range w.nodes {
		n.close()
	}
	w.Eventually(handOver+5*time.Second, "closed, with no instance and no lease held", func() bool {
		return len(w.alive) == 0 && w.lease.holder == nil && !slices.ContainsFunc(w.nodes,
			func(n *node) bool {
				return !n.closed
			})
	})
}

func (w *world) states() (out []core.State) {
	for _, n := range w.nodes {
		out = append(out, n.m.State())
	}
	return out
}
