package core_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// world is one seeded history: true time, a store behind a faulty network, and nodes that want the
// lease. It checks the promises at every step.
type world struct {
	*sim.World
	opt options

	cells   map[string]cell // records, by name
	former  map[string][]formerCell
	version int // version of the newest record
	nodes   []*node
	errs    float64 // share of calls that the store answers with an error
	refused float64 // share of swaps that the store refuses
	watch   bool
	gives   bool // the store assigns its own tokens
	shows   bool // a blank or absent record shows any token that is not below its own
	expires bool // the store blanks or deletes the record of a session that is not renewed
	mixed   bool // every other node has a different TTL
	shared  int  // which nodes hold the lease through a session record: none, all, every other
	fair    int  // which nodes wait in a queue: none, all, every other
	queue   []core.Place
	blanks  []core.Blank // blanks left by releases

	highest core.Token
	before  map[core.Token]core.Token // the tenure before each
	grants  int
	ordered int // claims with others behind in the queue

	target target
	twice  int // moments at which two nodes believed that they held the lease
}

// options are the options of a history. The last ones break a rule, to show that the checks notice.
type options struct {
	cfg        core.Config
	drift      int  // rate error of clocks, in millionths
	fromAnswer bool // validity counted from the answer
	blindStore bool // writes without comparing versions
	order      bool // all wait in the queue, network and store are reliable; checks the order
	deafQueue  bool // the queue returns no places ahead
	fenced     bool // processes stop without noticing, and write to a fenced target
	unfenced   bool // the target is not fenced
}

var testConfig = core.Config{
	TTL: 10 * time.Second, Renew: 10 * time.Second / 3, Operation: time.Second,
	Retry: 2 * time.Second,
	Drain: time.Second, Margin: 300 * time.Millisecond, RateError: 0.01,
}

const (
	mixedTTL  = 14 * time.Second
	lockDelay = 7 * time.Second
)

// newWorld picks sizes and faults. Each seed has some of them, and rarely all.
func newWorld(s *sim.World, opt options) *world {
	w := &world{World: s, opt: opt, cells: map[string]cell{},
		former: map[string][]formerCell{}, before: map[core.Token]core.Token{},
		target: target{unfenced: opt.unfenced}}
	w.Faults = sim.Faults{
		Loss: w.Fraction("loss", 0.1), Duplicate: w.Fraction("double", 0.05),
		Delay: time.Millisecond, Jitter: w.Span("jitter", 0, 50*time.Millisecond),
		// longer than an operation may take
		Late: w.Fraction("late", 0.1), Lateness: 4 * time.Second,
	}
	w.errs, w.refused = w.Fraction("errors", 0.1), 0.02
	w.watch, w.mixed = w.Chance("watch", 1./3), w.Chance("mixed", 1./5)
	w.gives = w.Chance("gives", 1./4)
	w.shows, w.expires = w.Chance("shows", 1./2), w.Chance("expires", 1./3)
	w.shared, w.fair = w.Number("shared", 0, 2), w.Number("fair", 0, 2)
	if opt.order {
		w.fair = 1
		w.reliable()
	}
	if w.Chance("lock-delay", 1./4) {
		w.opt.cfg.LockDelay = lockDelay
	}
	for i := range w.Number("nodes", 2, 5) {
		n := &node{w: w, i: i}
		w.nodes = append(w.nodes, n)
		n.boot()
	}
	w.Always("one valid holder in true time", w.oneHolder)
	for verb, do := range map[string]func(*node, sim.Args){
		"cut": (*node).cut, "mute": (*node).mute, "pause": (*node).pause,
		"suspend": (*node).suspend, "jump": (*node).jump,
		"restart": (*node).restart, "close": (*node).close, "acquire": (*node).wants,
		"stop": (*node).stop, "write": (*node).write, "look": (*node).looks,
		"halt": (*node).halt, "lag": (*node).lag,
	} {
		w.Can(verb, func(a sim.Args) {
			if i := a.Int(0, len(w.nodes)); !w.Failed() {
				do(w.nodes[i], a)
			}
		})
	}
	return w
}

// oneHolder checks all nodes at one moment of true time, each by its own clocks.
func (w *world) oneHolder() error {
	var holder *node
	for _, n := range w.nodes {
		if !n.valid() {
			continue
		}
		if holder != nil {
			w.twice++
			if w.opt.fenced {
				return nil // the clocks of one node have stood still
			}
			return fmt.Errorf("node %d with token %d, node %d with token %d", holder.i,
				holder.token, n.i, n.token)
		}
		holder = n
	}
	return nil
}

// store returns the index of the store in the network.
func (w *world) store() int { return len(w.nodes) }

// call carries one store operation. Either direction may lose a message, a late message may still
// arrive, and an error does not tell whether the operation was performed.
func (w *world) call(n *node, what any, do func() core.Event, failed core.Event,
	step func(core.Event)) {
	incarnation := n.incarnation
	answer := func(ev core.Event) func() {
		return func() {
			if n.incarnation == incarnation {
				step(ev)
			}
		}
	}
	if w.Chance("error-before", w.errs) {
		w.After(w.Span("error-after", 0, 100*time.Millisecond), answer(failed))
		return
	}
	w.Send(n.i, w.store(), what, func() {
		ev := do()
		if w.Chance("error-after-all", w.errs) {
			ev = failed
		}
		w.Send(w.store(), n.i, ev, answer(ev))
	})
}

// cell is the stored record of a name.
type cell struct {
	record  core.Record
	version core.Version
}

const lease = "lease" // its name; the name of a session record is the nonce

// swapBy is swap for a node.
func (w *world) swapBy(n *node, name string, e core.Swap) core.Swapped {
	n.sees = w.Elapsed()
	return w.swap(name, e)
}

func (w *world) swap(name string, e core.Swap) core.Swapped {
	if e.Old != w.cells[name].version && !w.opt.blindStore {
		return core.Swapped{Op: e.Op, Status: core.Conflicted}
	}
	if !w.opt.order && w.Chance("refused", w.refused) {
		return core.Swapped{Op: e.Op, Status: core.Refused, Err: errTest}
	}
	given := w.give(name, &e.Next)
	if name == lease {
		w.inOrder(e.Next)
	}
	if old := w.cells[name].record; name == lease && e.Next.Nonce != "" &&
		e.Next.Token != old.Token {
		w.before[e.Next.Token] = old.Token
	}
	w.version++
	c := cell{e.Next, core.Version(fmt.Sprint(w.version))}
	w.set(name, c)
	if name != lease {
		w.expire(name, c)
	}
	for _, n := range w.nodes {
		if n.watching && name == lease {
			w.hint(n)
		}
	}
	w.hintOf(name)
	return core.Swapped{Op: e.Op, Status: core.Written, Version: c.version, Token: given}
}

// give raises the token of a new tenure of the lease, if the store assigns tokens. A session gets
// the token that it asks for: when its record is deleted, only the session knows its last token.
func (w *world) give(name string, next *core.Record) (token core.Token) {
	if !w.gives || next.Nonce == "" || next.Token == w.cells[name].record.Token {
		return 0
	}
	if given := core.Token(w.Number("given", 0, 3)); name == lease {
		next.Token += given
	}
	return next.Token
}

// formerCell is what a name had until then.
type formerCell struct {
	cell
	until time.Duration
}

// set replaces a cell. The zero cell is an absent record.
func (w *world) set(name string, c cell) {
	w.former[name] = append(w.former[name], formerCell{w.cells[name], w.Elapsed()})
	w.cells[name] = c
}

// readBy is read for a node. While its server lags behind, the node reads what was there when it
// began, or when the node has written last.
func (w *world) readBy(n *node, name string) (core.Record, core.Version) {
	if w.Elapsed() < n.lags {
		for _, f := range w.former[name] {
			if f.until > n.sees {
				return w.shown(f.cell)
			}
		}
	}
	return w.shown(w.cells[name])
}

// read returns the record and the version that the store shows.
func (w *world) read(name string) (core.Record, core.Version) {
	return w.shown(w.cells[name])
}

func (w *world) shown(c cell) (core.Record, core.Version) {
	if w.shows && c.record.Nonce == "" {
		c.record.Token += core.Token(w.Number("shown", 0, 20))
	}
	return c.record, c.version
}

// expire blanks or deletes the record of a session when it has not been renewed for one and a half
// times its TTL, if the store does that.
func (w *world) expire(name string, c cell) {
	if !w.expires || c.record.Nonce == "" {
		return
	}
	w.After(c.record.TTL*3/2, func() {
		switch {
		case w.cells[name].version != c.version:
		case w.Chance("deletes", 0.5):
			w.set(name, cell{})
		default:
			w.version++
			w.set(name, cell{core.Record{Token: c.record.Token},
				core.Version(fmt.Sprint(w.version))})
			w.hintOf(name)
		}
	})
}

// endSession blanks the record of a session, and removes it some time later.
func (w *world) endSession(n *node, e core.EndSession) core.SessionEnded {
	done := w.swapBy(n, e.Nonce, core.Swap{Old: e.Old, Next: e.Next})
	if done.Status == core.Written {
		w.After(w.Span("ended-for", 0, 3*w.opt.cfg.TTL), func() {
			if w.cells[e.Nonce].version == done.Version {
				w.set(e.Nonce, cell{})
			}
		})
	}
	return core.SessionEnded{Op: e.Op, Status: done.Status, Version: done.Version, Err: done.Err}
}

// free reports whether the lease is free.
func (w *world) free() bool {
	r := w.cells[lease].record
	if r.Nonce == "" || r.Session == 0 {
		return r.Nonce == ""
	}
	s := w.cells[r.Nonce].record
	return s.Token > r.Session || s.Nonce == ""
}

// hint notifies a watching node of the record.
func (w *world) hint(n *node) {
	r, _ := w.read(lease)
	ev := core.Changed{Record: r}
	w.Send(w.store(), n.i, ev, func() { n.step(ev) })
}

var errTest = errors.New("store away")
