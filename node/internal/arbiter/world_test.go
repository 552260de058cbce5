package arbiter_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/node/internal/arbiter"
)

// The abstract lease: its holder renews it every ttl/3 and relies on it until stopBy after the last
// renewal; no other member can have it before ttl after the last renewal.
const (
	ttl    = 30 * time.Second
	drain  = 5 * time.Second
	stopBy = ttl - drain - time.Second
)

// world is one history in true time: members on sides of a partition, whose views follow with
// delays, and a lease that some of them cannot reach for some time.
type world struct {
	*sim.World
	cfg          arbiter.Config
	nodes        []*node
	all          map[string]*incarnation
	incarnations int
	moved        time.Duration // when a member or a side last changed
	parted       time.Duration // when sides last changed
	changed      time.Duration // when a view, a store or a side last changed
	leases       [2]record
	released     time.Duration // when the lease of the majority was last given up
	detection    time.Duration // maximum delay until a view follows
}

// record is the state of a lease in the store.
type record struct {
	holder *incarnation
	until  time.Duration
}

// freeFor reports whether a lease can be acquired by l.
func (w *world) freeFor(name arbiter.Name, l *incarnation) bool {
	r := &w.leases[name]
	return r.holder == nil || r.holder == l || w.Elapsed() >= r.until
}

// node is a machine of the cluster.
type node struct {
	w           *world
	i           int
	side        int
	incarnation *incarnation // nil while down
	store       bool         // the store is reachable
	// until when it has no session after an outage of the store, in which the last one has ended
	session      time.Duration
	since, until time.Duration // of an outage of the store
	back         time.Duration // when such an outage last ended; negative: there has been none
}

// acquires reports whether the node can acquire leases.
func (n *node) acquires() bool { return n.store && n.w.Elapsed() >= n.session }

// incarnation is one process on a node.
type incarnation struct {
	*node
	id      string
	born    int // order of birth
	core    *arbiter.Core
	members int // that begin a cluster
	view    arbiter.View
	begun   bool // it, or a former incarnation of its process, has seen as many as begin a cluster
	gate    arbiter.Gate
	looked  time.Duration // when its view last changed
	here    bool
	gateAt  time.Duration // when the gate last changed
	held    [2]uint64     // attempts that hold the leases; 0: none
	renewed [2]time.Duration
	over    bool
	left    bool          // it has released the lease
	ended   time.Duration // when it ended or began to leave
	at      time.Time     // requested wake
	wake    int
}

func newWorld(s *sim.World) *world {
	w := &world{World: s, all: map[string]*incarnation{}}
	w.Faults = sim.Faults{Loss: w.Fraction("loss", 0.2), Delay: time.Millisecond,
		Jitter: w.Span("jitter", 0, 500*time.Millisecond)}
	w.detection = w.Span("detection", 0, 6*time.Second)
	if w.Chance("blind", 0.1) {
		w.detection += w.Span("blindness", 0, time.Minute)
	}
	n := w.Number("members", 2, 7)
	w.cfg = arbiter.Config{Members: n/2 + 1, TTL: ttl}
	if n == 2 && w.Chance("alone", 0.5) {
		w.cfg.Members = 1
	}
	for i := range n {
		w.nodes = append(w.nodes, &node{w: w, i: i, store: true, back: -1})
	}
	for _, n := range w.nodes {
		w.After(w.Span("boot", 0, 3*time.Second), n.boot)
	}
	w.Can("split", w.split)
	w.Can("unite", func(a sim.Args) { w.unite(a.Word(0) == "restart") })
	w.Can("away", func(a sim.Args) { w.storeAway(a) })
	for verb, do := range map[string]func(*incarnation){
		"crash": (*incarnation).crash, "leave": (*incarnation).leave,
	} {
		w.Can(verb, func(a sim.Args) {
			if i := a.Int(0, 7); i < len(w.nodes) && w.nodes[i].incarnation != nil {
				do(w.nodes[i].incarnation)
				w.After(a.Span(1), w.nodes[i].boot)
			}
		})
	}
	w.Always("one side", w.oneSide)
	w.Always("no side flaps", w.noFlaps)
	w.Always("the majority serves", w.majorityServes)
	return w
}

// touch records a change that requires a new agreement of the sides.
func (w *world) touch() { w.changed = w.Elapsed() }

func (w *world) living() (all []*incarnation) {
	for _, n := range w.nodes {
		if n.incarnation != nil {
			all = append(all, n.incarnation)
		}
	}
	return all
}

func (w *world) byID(id string) *incarnation {
	if l := w.all[id]; l != nil && !l.over {
		return l
	}
	return nil
}

// boot begins the first incarnation of a process.
func (n *node) boot() { n.begin(n.w.cfg.Members, false) }

// rejoin begins an incarnation of a process whose former incarnation has counted so many members.
func (n *node) rejoin(counted int) {
	members := n.w.cfg.Members
	if counted > 0 {
		members = counted/2 + 1
	}
	n.begin(members, true)
}

func (n *node) begin(members int, later bool) {
	if n.incarnation != nil {
		return
	}
	n.w.incarnations++
	l := &incarnation{node: n, id: fmt.Sprintf("m%d.%d", n.i, n.w.incarnations),
		born: n.w.incarnations, members: members, begun: later || members == 1}
	cfg := n.w.cfg
	cfg.Session, cfg.Members, cfg.Later = l.id, members, later
	l.core = arbiter.New(cfg)
	n.incarnation, n.w.all[l.id] = l, l
	l.view = arbiter.View{Self: l.id, Oldest: l.id, Members: []string{l.id}}
	l.step(l.view)
	n.w.views(l)
}

func (l *incarnation) end() {
	l.over = true
	l.incarnation = nil
	l.w.touch()
	l.w.views(nil)
}

func (l *incarnation) crash() { l.end() }

func (l *incarnation) leave() {
	l.left, l.ended = true, l.w.Elapsed()
	l.w.touch() // others may rely on its lease until they hear of it
	l.w.moved = l.w.Elapsed()
	l.step(arbiter.Leave{})
	l.w.After(50*time.Millisecond, func() {
		if !l.over {
			l.end()
		}
	})
}

// views makes every member see its side, each after a delay; a new member sees itself at once, and
// the others in the first round of its provider.
func (w *world) views(fresh *incarnation) {
	w.touch()
	w.moved = w.Elapsed()
	for _, l := range w.living() {
		after := w.Span("detect", 0, w.detection)
		if l == fresh {
			after = w.Span("discover", 0, time.Second)
		}
		w.After(after, l.look)
	}
}

func (l *incarnation) look() {
	if l.over {
		return
	}
	v := arbiter.View{Self: l.id}
	oldest := l
	for _, o := range l.w.living() {
		if o.side == l.side {
			v.Members = append(v.Members, o.id)
			if o.born < oldest.born {
				oldest = o
			}
		}
	}
	v.Oldest = oldest.id
	if v.Oldest == l.view.Oldest && slices.Equal(v.Members, l.view.Members) {
		return
	}
	l.view, l.looked = v, l.w.Elapsed()
	l.begun = l.begun || len(v.Members) >= l.members
	l.w.touch()
	l.step(v)
}

// split assigns members to sides.
func (w *world) split(a sim.Args) {
	for i, n := range w.nodes {
		n.side = a.Int(i, 4)
	}
	w.cuts()
}

func (w *world) cuts() {
	w.parted = w.Elapsed()
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			switch cut := a.side != b.side; {
			case cut && !w.IsCut(a.i, b.i):
				w.Cut(a.i, b.i)
			case !cut && w.IsCut(a.i, b.i):
				w.Mend(a.i, b.i)
			}
		}
	}
	w.views(nil)
}

// unite heals the partition. With restart, the members that are not on the side of the first member
// begin another incarnation.
func (w *world) unite(restart bool) {
	for _, n := range w.nodes {
		if restart && n.side != w.nodes[0].side && n.incarnation != nil {
			n.incarnation.left, n.incarnation.ended = true, w.Elapsed()
			_, counted := n.incarnation.core.Counts()
			n.incarnation.step(arbiter.View{Self: n.incarnation.id, Removed: true})
			n.incarnation.end()
			w.After(w.Span("rejoin", time.Second, 5*time.Second), func() { n.rejoin(counted) })
		}
		n.side = 0
	}
	w.cuts()
}

func (w *world) storeAway(a sim.Args) {
	for i := range w.nodes {
		if a.Int(1+i, 2) == 1 {
			w.nodes[i].storeAway(a.Span(0))
		}
	}
}

// storeAway makes the store silent for a while. A session that has ended meanwhile begins again.
func (n *node) storeAway(span time.Duration) {
	w := n.w
	if n.store {
		n.since = w.Elapsed()
	}
	n.store, n.until = false, max(n.until, w.Elapsed()+span)
	w.touch()
	w.After(span, func() {
		if n.store || w.Elapsed() < n.until {
			return
		}
		n.store = true
		w.touch()
		if w.Elapsed()-n.since >= stopBy-ttl/3 {
			n.back = w.Elapsed()
			d := w.Span("session", 0, ttl*6/10)
			n.session = w.Elapsed() + d
			w.After(d, w.touch)
		}
	})
}

func (l *incarnation) step(e any) {
	if l.over {
		return
	}
	w := l.w
	for _, e := range l.core.Step(w.Now(), e) {
		switch e := e.(type) {
		case arbiter.Gate:
			if l.gate.Open != e.Open {
				l.gateAt = w.Elapsed()
			}
			opens := e.Open && !l.gate.Open
			if l.gate = e; opens {
				w.mayOpen(l)
			}
			w.Note("%s: gate %v", l.id, e)
		case arbiter.Tell:
			l.here = e.Here
		case arbiter.Send:
			l.send(e)
		case arbiter.Try:
			l.try(e)
		case arbiter.Probe:
			l.probe(e.Op)
		case arbiter.Compare:
			l.compare(e)
		case arbiter.Foreign:
			w.Fail("%s: %s names another store", l.id, e.Leader)
		case arbiter.ForeignPeer:
			w.Fail("%s: %s says that it uses another store", l.id, e.Member)
		case arbiter.Release:
			l.release(e.Op)
		}
	}
	if at := l.core.NextWake(); !at.Equal(l.at) {
		l.at = at
		l.wakeAt(at)
	}
}

func (l *incarnation) send(e arbiter.Send) {
	for _, to := range e.To {
		o := l.w.byID(to)
		if o == nil {
			continue
		}
		l.w.Send(l.i, o.i, e.Verdict, func() {
			o.step(arbiter.Heard{From: l.id, Verdict: e.Verdict})
		})
	}
}

func (l *incarnation) wakeAt(at time.Time) {
	l.wake++
	if at.IsZero() {
		return
	}
	wake := l.wake
	l.w.After(at.Sub(l.w.Now()), func() {
		if wake == l.wake {
			l.step(arbiter.Wake{})
		}
	})
}

// try is one attempt. While the store is unavailable, its outcome is unknown: the lease may have
// been granted, and is then released.
func (l *incarnation) try(e arbiter.Try) {
	w, r := l.w, &l.w.leases[e.Lease]
	w.After(w.Span("try", 0, 200*time.Millisecond), func() {
		free := w.freeFor(e.Lease, l)
		switch {
		case l.over:
		case !l.acquires():
			if free && !l.store && w.Chance("written", 0.3) {
				r.holder, r.until = nil, w.Elapsed()+2*time.Second // released later
			}
			w.After(w.cfg.Operation(), func() {
				l.step(arbiter.Tried{Op: e.Op, Result: arbiter.Unknown})
			})
		case !free:
			l.step(arbiter.Tried{Op: e.Op, Result: arbiter.Taken})
		default:
			r.holder = l
			l.held[e.Lease] = e.Op
			l.renew(e)
			l.step(arbiter.Tried{Op: e.Op, Result: arbiter.Held})
		}
	})
}

func (l *incarnation) probe(op uint64) {
	w := l.w
	w.After(w.Span("probe", 0, 200*time.Millisecond), func() {
		result := arbiter.Taken
		switch {
		case l.over:
			return
		case !l.store, !l.acquires() && w.leases[arbiter.Majority].holder != nil:
			w.After(w.cfg.Operation(), func() {
				l.step(arbiter.Probed{Op: op, Result: arbiter.Unknown})
			})
			return
		case w.freeFor(arbiter.Majority, l):
			result = arbiter.Held
		}
		l.step(arbiter.Probed{Op: op, Result: result})
	})
}

func (l *incarnation) compare(e arbiter.Compare) {
	w := l.w
	w.After(w.Span("compare", 0, 200*time.Millisecond), func() {
		result := arbiter.Held
		if h := w.leases[arbiter.Majority].holder; h != nil && h.id == e.Session {
			result = arbiter.Taken
		}
		if !l.store {
			result = arbiter.Unknown
		}
		l.step(arbiter.Compared{Op: e.Op, Result: result})
	})
}

func (l *incarnation) renew(e arbiter.Try) {
	w, r := l.w, &l.w.leases[e.Lease]
	if l.over || l.held[e.Lease] != e.Op {
		return
	}
	if l.store && r.holder == l {
		l.renewed[e.Lease], r.until = w.Elapsed(), w.Elapsed()+ttl
	}
	if left := l.renewed[e.Lease] + stopBy - w.Elapsed(); left <= 0 {
		l.held[e.Lease] = 0
		l.step(arbiter.Lost{Op: e.Op})
		return
	} else {
		w.After(min(left, ttl/3), func() { l.renew(e) })
	}
}

func (l *incarnation) release(op uint64) {
	for name := range l.held {
		if l.held[name] != op {
			continue
		}
		l.held[name] = 0
		if l.store && l.w.leases[name].holder == l {
			l.w.leases[name].holder = nil
			if arbiter.Name(name) == arbiter.Majority {
				l.w.released = l.w.Elapsed()
			}
		}
	}
}
