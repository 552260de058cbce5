package core_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/sharding/internal/core"
)

// world is one history: members with a region each, a lease store, and the true state of every
// message.
type world struct {
	*sim.World
	opt options

	nodes   []*node
	store   *store
	fifo    map[[2]int]time.Duration
	view    map[int][]int // the members that each member should see
	trouble []time.Duration
	// forgetful is until when each member does not reach the store of remembered entities.
	forgetful []time.Duration

	p struct{ data, store, slow float64 } // fault rates

	acting    bool
	disturbed bool // of an exploration: there is an act
	handled   map[messageID]bool
	order     map[orderID]int
	tokens    map[int]uint64 // highest token under which a message of each shard was handled
	// entities that a majority remembers, by the number of their last addition
	known     map[string]int
	adds      int
	overrides map[int]string // by shard: the overrides of users and of their function
	alive     map[string][]*entity

	deliveries map[messageID]*delivery
	inOrder    map[core.Tenure]bool // tenures that their hosts gave up in order

	stat struct{ sent, handled, moves, moved, lost, grants, orphans, delivered, again, failed int }
}

// options of a history.
type options struct {
	nodes, shards, entities int
	acts                    int
	every                   time.Duration
	planned                 bool // nothing fails, and no delay exceeds a timeout
	limit                   int  // of running entities of a shard; 0: none
	remember                bool
	pace                    int    // of starting remembered entities, in each second; 0: at once
	deliver                 bool   // half of the messages are deliveries
	keep                    bool   // each shard has one entity, which always runs
	override                choice // source of homes
	explore                 bool   // every random choice is possible, and acts are random
	restless                bool   // shards move all the time
}

var (
	planned = options{nodes: 3, shards: 2, entities: 2, acts: 8, every: 900 * time.Millisecond,
		planned: true}
	chaos = options{nodes: 3, shards: 2, entities: 2, acts: 16, every: 900 * time.Millisecond}
	large = options{nodes: 5, shards: 6, entities: 2, acts: 24, every: 600 * time.Millisecond}
	tight = options{nodes: 3, shards: 2, entities: 4, acts: 8, every: 900 * time.Millisecond,
		planned: true, limit: 2}

	remembering = options{nodes: 3, shards: 2, entities: 2, acts: 16,
		every: 900 * time.Millisecond, remember: true}
	rememberingPlanned = options{nodes: 3, shards: 2, entities: 2, acts: 8,
		every: 900 * time.Millisecond, planned: true, remember: true}
	rememberingPaced = options{nodes: 3, shards: 2, entities: 4, acts: 16,
		every: 900 * time.Millisecond, remember: true, pace: 4}

	overriding = options{nodes: 3, shards: 3, entities: 2, acts: 16,
		every: 900 * time.Millisecond, override: table}
	overridingPlanned = options{nodes: 3, shards: 3, entities: 2, acts: 8,
		every: 1800 * time.Millisecond, planned: true, override: table}
	consulting = options{nodes: 3, shards: 3, entities: 2, acts: 16,
		every: 900 * time.Millisecond, override: function}
	consultPlanned = options{nodes: 3, shards: 3, entities: 2, acts: 8,
		every: 1800 * time.Millisecond, planned: true, override: function}

	delivering = options{nodes: 3, shards: 2, entities: 2, acts: 16,
		every: 900 * time.Millisecond, deliver: true}
	deliveringPlanned = options{nodes: 3, shards: 2, entities: 2, acts: 8,
		every: 900 * time.Millisecond, planned: true, deliver: true}

	keeping = options{nodes: 3, shards: 3, entities: 1, acts: 16,
		every: 900 * time.Millisecond, keep: true}
	keepingPlanned = options{nodes: 3, shards: 3, entities: 1, acts: 8,
		every: 900 * time.Millisecond, planned: true, keep: true}

	tiny = options{nodes: 2, shards: 1, entities: 1, acts: 2, every: 700 * time.Millisecond,
		explore: true}
	tinyPlanned = options{nodes: 2, shards: 1, entities: 1, acts: 2, every: 700 * time.Millisecond,
		explore: true, planned: true}
)

const ms = time.Millisecond

// buffer is the bound for one shard.
const buffer = 120

func config(shards int) core.Config {
	return core.Config{
		Shards: shards, Repeat: 300 * ms, FlushTimeout: 1000 * ms, HandOff: 2000 * ms,
		Patience: 2500 * ms,
		Retry:    1000 * ms, Orphan: 5000 * ms, Beat: 250 * ms, Settle: 800 * ms, Fit: 2500 * ms,
		Resend: 400 * ms, MaxResend: 1600 * ms, Handled: 1000,
		Buffer: 8 * buffer, BufferBytes: 1 << 20,
	}
}

// message is a message of the application.
type message struct {
	messageID
	*delivery // nil: not a delivery
}

type messageID struct {
	origin    core.Member
	entity, n int
}

func (m message) String() string { return fmt.Sprintf("%s:%d→%d", m.origin.ID, m.n, m.entity) }

type orderID struct {
	origin core.Member
	entity int
}

func newWorld(s *sim.World, opt options) *world {
	w := &world{World: s, opt: opt, fifo: map[[2]int]time.Duration{}, view: map[int][]int{},
		handled: map[messageID]bool{},
		order:   map[orderID]int{}, tokens: map[int]uint64{}, alive: map[string][]*entity{},
		deliveries: map[messageID]*delivery{}, known: map[string]int{},
		inOrder: map[core.Tenure]bool{},
		trouble: make([]time.Duration, opt.nodes), forgetful: make([]time.Duration, opt.nodes)}
	w.store = &store{w: w, sessions: map[session]time.Duration{}, leases: map[int]*lease{},
		away: make([]time.Duration, opt.nodes)}
	for i := range opt.nodes {
		w.nodes = append(w.nodes, &node{w: w, i: i})
	}
	w.p.data, w.p.store, w.p.slow = w.share("data-faults", 0.3), w.share("store-faults", 0.3),
		w.share("slow-entities", 0.3)
	for i := range opt.shards {
		if opt.keep {
			w.add(strconv.Itoa(i))
		}
	}
	for _, n := range w.nodes {
		n.boot()
	}
	w.refresh()
	w.Always("one live incarnation, under the lease", w.oneAlive)
	w.Always("a table does not go back", w.tablesGrow)
	w.Always("who waits in vain lets go", w.prompt)
	return w
}

// share chooses the rate of a fault in this history.
func (w *world) share(name string, most float64) float64 {
	if w.opt.explore {
		return most
	}
	return w.Fraction(name, most)
}

// refresh shows all members what they should see: the members that are up and not cut off in either
// direction.
func (w *world) refresh() {
	for _, n := range w.nodes {
		w.show(n, func(o *node) bool { return !w.IsCut(n.i, o.i) && !w.IsCut(o.i, n.i) })
	}
}

func (w *world) show(n *node, sees func(*node) bool) {
	if !n.up {
		return
	}
	n.run(func() {
		v := core.View{Self: n.me()}
		for _, o := range w.nodes {
			if o == n || o.up && sees(o) {
				v.Members = append(v.Members, o.me())
			}
		}
		n.onView(v)
	})
}

// send sends a control message.
func (w *world) send(from, to *node, m core.Message) {
	fi, ti := from.me(), to.inc
	w.Send(from.i, to.i, show{m}, func() {
		if to.up && to.inc == ti {
			to.run(func() { to.receive(fi, m) })
		}
	})
}

// stream sends a message to an entity: in order, unless the connection breaks.
func (w *world) stream(from, to *node, m core.Data) {
	link := [2]int{from.i, to.i}
	at := max(w.Elapsed()+2*ms, w.fifo[link])
	most := 4
	if w.opt.planned {
		most = 2
	}
	if w.acting && w.Chance("data-fault", w.p.data) {
		switch w.Number("data-fault-kind", 1, most) {
		case 1:
			at += 30 * ms
		case 2:
			at += 300 * ms
		case 3: // lost with the connection
			return
		case 4: // an abandoned connection delivers late, twice and out of order
			w.deliver(from, to, at+1500*ms, m)
		}
	}
	if w.opt.planned { // slow, but within all timeouts
		at = max(w.fifo[link], min(at, w.Elapsed()+600*ms))
	}
	w.fifo[link] = at
	w.deliver(from, to, at, m)
}

func (w *world) deliver(from, to *node, at time.Duration, m core.Data) {
	fi, ti := from.me(), to.inc
	w.After(at-w.Elapsed(), func() {
		if !w.IsCut(from.i, to.i) && to.up && to.inc == ti {
			to.run(func() { to.receive(fi, m) })
		}
	})
}

// show prints a message with all its fields in the trace of a history.
type show struct{ m core.Message }

func (s show) String() string { return fmt.Sprintf("%T%+v", s.m, s.m) }

func (w *world) node(m core.Member) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.me().ID == m.ID })
	if i < 0 {
		return nil
	}
	return w.nodes[i]
}

// split cuts one member off; d 0 means permanently.
func (w *world) split(i int, d time.Duration) {
	each := func(do func(a, b int)) {
		for j := range w.nodes {
			if j != i {
				do(i, j)
				do(j, i)
			}
		}
	}
	each(w.Cut)
	w.After(700*ms, w.refresh)
	if d > 0 {
		w.After(d, func() {
			each(w.Mend)
			w.After(300*ms, w.refresh)
		})
	}
}
