package core_test

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/singleton/internal/core"
)

const (
	handOver   = 5 * time.Second
	hurry      = time.Second
	maxBackOff = 4 * time.Second
	declineFor = 6 * time.Second
	maxReturn  = 8 * time.Second
	grace      = 2 * time.Second
	interval   = time.Second
)

// node is one member: a machine, a route, and sometimes an instance. After a restart it is another
// incarnation.
type node struct {
	w           *world
	i           int
	incarnation uint64
	born        time.Duration
	member      core.Member
	ran         uint64        // last token under which an instance ran
	began       time.Duration // when the instance was made, or made again
	m           *core.Machine
	r           *core.Route

	version int  // of the application
	inside  bool // it has the preferred role
	wants   preference

	closed, final bool
	foreign       bool          // it runs a version of the application without the singleton
	shut          time.Duration // until when its gate is shut
	shutAt        time.Duration // since when its gate is shut
	sick          time.Duration // until when instances fail here
	wake          time.Duration
	waiting       map[int]uint64 // rounds of routes that wait for the instance here, by node
}

func (n *node) me() core.Member { return n.member }

func (n *node) boot() {
	n.incarnation++
	n.member = core.Member{ID: fmt.Sprint("n", n.i), Incarnation: n.incarnation,
		Address: fmt.Sprint("host", n.i)}
	n.born, n.closed, n.final, n.wake, n.waiting = n.w.Elapsed(), false, false, 0, map[int]uint64{}
	n.shut, n.shutAt, n.sick = 0, 0, 0
	n.m = core.New(core.Config{
		HandOver: handOver, Hurry: hurry, BackOff: 100 * time.Millisecond, MaxBackOff: maxBackOff,
		Tries: 3, Settle: n.w.settle, Grace: grace,
		AnnouncedFor: declineFor, Repeat: time.Second,
		Return: 2 * time.Second, MaxReturn: maxReturn,
		Doubt: 6 * time.Second,
	})
	n.r = core.NewRoute(interval)
	incarnation := n.incarnation
	n.w.After(0, func() {
		if n.incarnation == incarnation {
			n.w.view(n, func(*node) bool { return true })
		}
	})
}

// crash ends the process and its instance. The others see the member leave, and its successor join,
// which may be of another version.
func (n *node) crash() {
	delete(n.w.alive, n)
	n.boot()
	n.w.equip(n)
	for _, o := range n.w.nodes {
		if o != n {
			n.w.later(o, func() { n.w.view(o, func(x *node) bool { return !n.w.apart(o, x) }) })
		}
	}
}

func (n *node) close() {
	n.final = true
	n.step(core.Close{})
}

// comesBack restarts a process that will not host any more, unless it was restarted before.
func (n *node) comesBack(d time.Duration) { n.w.After(d, n.living(n.crash)) }

// storeAway carries out "store MEMBER away for TIME".
func (n *node) storeAway(a sim.Args) { n.w.lease.unreachable(n, n.w.Elapsed()+a.Span(3)) }

// gateShut carries out "gate MEMBER shut for TIME".
func (n *node) gateShut(a sim.Args) { n.shutFor(a.Span(3)) }

func (n *node) shutFor(d time.Duration) {
	w := n.w
	if n.shut <= w.Elapsed() {
		n.shutAt = w.Elapsed()
	}
	n.shut = max(n.shut, w.Elapsed()+d)
	n.step(core.Gate{})
	w.After(d, n.living(n.gateOpens))
}

// sickens carries out "sick MEMBER for TIME": instances fail soon after they start.
func (n *node) sickens(a sim.Args) { n.sickFor(a.Span(2)) }

func (n *node) sickFor(d time.Duration) {
	n.sick = max(n.sick, n.w.Elapsed()+d)
	n.fails()
}

// fails makes the instance panic, or stop, if instances fail here.
func (n *node) fails() {
	w, run := n.w, n.w.alive[n]
	if run == 0 || n.sick <= w.Elapsed() {
		return
	}
	broken := w.Chance("panics", 0.7)
	w.After(w.Span("fails-after", 0, 200*time.Millisecond), n.living(func() {
		switch {
		case w.alive[n] != run:
		case broken:
			n.step(core.Broken{Run: run, Ran: w.Elapsed() - n.began})
		default:
			n.gone(run)
		}
	}))
}

func (n *node) gateOpens() {
	if n.shut <= n.w.Elapsed() {
		n.step(core.Gate{Open: true})
	}
}

// sees carries out "see MEMBER DIGITS": its view contains the members with a 1, right or wrong.
func (n *node) sees(a sim.Args) {
	seen := a.Word(1)
	if len(seen) < len(n.w.nodes) {
		a.Fail("every member needs a digit")
		return
	}
	n.w.view(n, func(o *node) bool { return seen[o.i] == '1' })
}

func (n *node) expelled() {
	n.final = true
	n.step(core.View{Self: n.me(), Removed: true})
}

// step passes an event to both machines, and carries out their effects.
func (n *node) step(ev core.Event) {
	w := n.w
	if n.foreign {
		return
	}
	at := w.Now()
	for _, e := range n.r.Step(at, ev) {
		w.Note("member %d routes: %T%+v", n.i, e, e)
		if ask, ok := e.(core.Ask); ok {
			w.send(n, ask.To, ask, func(to *node) { to.identify(n.i, n.incarnation, ask.Round, 0) })
		}
	}
	for _, e := range n.m.Step(at, ev) {
		w.Note("member %d is %v: %T%+v", n.i, n.m.State(), e, e)
		n.carryOut(e)
	}
	_, ticked := ev.(core.Wake)
	n.arm(ticked)
}

// arm plans the next tick. A machine must not ask again for a tick that it has just had.
func (n *node) arm(ticked bool) {
	w := n.w
	for _, due := range []time.Time{n.m.NextWake(), n.r.NextWake()} {
		if due.IsZero() {
			continue
		}
		now := w.Elapsed()
		at := max(now+due.Sub(w.Now()), now+time.Millisecond)
		if ticked && !due.After(w.Now()) {
			w.Fail("member %d is %v and wants another tick at once", n.i, n.m.State())
			return
		}
		if n.wake > now && n.wake <= at {
			continue
		}
		n.wake = at
		incarnation := n.incarnation
		w.After(at-now, func() {
			if n.incarnation == incarnation {
				n.step(core.Wake{})
			}
		})
	}
}

func (n *node) carryOut(e core.Effect) {
	w := n.w
	switch e := e.(type) {
	case core.Acquire:
		w.lease.begin(w, n, e.Attempt)
	case core.Cancel:
		w.lease.cancel(w, n, e.Attempt)
	case core.Start:
		n.start(e)
	case core.Restart:
		n.restart(e)
	case core.Stop:
		if w.opt.earlyRelease {
			w.lease.free()
		}
		n.ends(e.Run, w.Span("stops-after", 0, 2*handOver)) // may need StopNow
	case core.StopNow:
		if !w.lease.valid(w, n, n.ran) && w.Chance("stuck", 0.1) {
			n.sticks(e.Run)
			return
		}
		n.ends(e.Run, w.Span("dies-after", 0, validity-stopBy))
	case core.Release:
		w.lease.release(w, n, e.Token)
	case core.TellFree:
		w.send(n, e.To, e, func(to *node) { to.step(core.Free{}) })
	case core.Follow:
	case core.Probe:
		w.lease.probe(w, n, e.Probe)
	case core.Announce:
		word := core.Announcement{From: n.me(), Seq: e.Seq, For: e.For, Failing: e.Failing,
			Claims: e.Claims, Token: e.Token}
		for _, o := range w.nodes {
			w.send(n, o.me(), word, func(to *node) { to.step(word) })
		}
	case core.Pause:
		me := n.me()
		for _, o := range w.nodes {
			paused := core.Paused{From: me, Token: e.Token, Lost: e.Lost}
			w.send(n, o.me(), paused, func(to *node) { to.step(paused) })
		}
	case core.TellLeaving:
		me := n.me()
		for _, o := range w.nodes {
			w.send(n, o.me(), core.Leaving{Member: me}, func(to *node) {
				to.step(core.Leaving{Member: me})
			})
		}
	case core.Closed:
		if n.closed {
			w.Fail("member %d closed twice", n.i)
		}
		n.closed = true
	}
}

// start makes the instance, if the lease still allows it.
func (n *node) start(e core.Start) {
	w := n.w
	if !w.lease.valid(w, n, e.Token) && !w.opt.blindStart {
		w.After(0, n.living(func() {
			n.step(core.Lost{Token: e.Token})
			n.step(core.Gone{Run: e.Run})
		}))
		return
	}
	if w.alive[n] != 0 {
		w.Fail("member %d starts %d while %d lives", n.i, e.Run, w.alive[n])
	}
	w.alive[n], n.ran, n.began = e.Run, e.Token, w.Elapsed()
	w.starts++
	for i := range w.nodes {
		if round, ok := n.waiting[i]; ok {
			n.answer(i, round)
		}
	}
	clear(n.waiting)
	n.fails()
}

// restart replaces an instance that has panicked.
func (n *node) restart(e core.Restart) {
	if n.w.alive[n] != e.Run {
		n.w.Fail("member %d restarts %d, and %d lives", n.i, e.Run, n.w.alive[n])
	}
	n.began = n.w.Elapsed()
	n.fails()
}

// ends makes the instance terminate later.
func (n *node) ends(run uint64, d time.Duration) {
	n.w.After(d, n.living(func() { n.gone(run) }))
}

// sticks makes the instance of a lost tenure block for longer than its lease is valid. Then only
// its token protects, so it does not count as alive.
func (n *node) sticks(run uint64) {
	d := n.w.Span("sticks-for", validity-stopBy, 15*time.Second)
	n.w.After(validity-stopBy, n.living(func() {
		if n.w.alive[n] == run {
			delete(n.w.alive, n)
		}
	}))
	n.w.After(d, n.living(func() { n.step(core.Gone{Run: run}) }))
}

func (n *node) gone(run uint64) {
	if n.w.alive[n] == run {
		delete(n.w.alive, n)
		n.step(core.Gone{Run: run, Ran: n.w.Elapsed() - n.began})
	}
}

// instanceEnds makes it stop by itself.
func (n *node) instanceEnds() {
	if run := n.w.alive[n]; run != 0 {
		n.gone(run)
	}
}

// living returns f, restricted to the present incarnation of the process.
func (n *node) living(f func()) func() {
	incarnation := n.incarnation
	return func() {
		if n.incarnation == incarnation {
			f()
		}
	}
}

// identify answers a route, later if the instance will run here, or passes the question on.
func (n *node) identify(from int, incarnation, round uint64, hops int) {
	if n.w.nodes[from].incarnation != incarnation {
		return
	}
	switch to, ok := n.m.Next(); {
	case n.m.State() == core.Active:
		n.answer(from, round)
	case n.m.Keeps():
		n.waiting[from] = round
	case ok && hops < 3:
		n.w.send(n, to, core.Ask{To: to, Round: round}, func(to *node) {
			to.identify(from, incarnation, round, hops+1)
		})
	}
}

func (n *node) answer(to int, round uint64) {
	me, token := n.me(), n.m.Token()
	host := core.Host{From: me, Round: round, Token: token}
	n.w.send(n, n.w.nodes[to].me(), host, func(to *node) { to.step(host) })
}

// send carries a message between incarnations, if the network delivers it.
func (w *world) send(from *node, to core.Member, msg any, deliver func(*node)) {
	var target *node
	for _, n := range w.nodes {
		if n.me() == to {
			target = n
		}
	}
	if target == nil {
		return
	}
	w.Send(from.i, target.i, msg, func() {
		if target.me() == to && !target.foreign {
			deliver(target)
		}
	})
}
