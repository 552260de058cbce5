package core_test

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// node is one process: a machine, its clocks, and a user of the lease.
type node struct {
	w           *world
	i           int
	incarnation int // counts restarts
	cfg         core.Config
	m           *core.Machine
	keep        *core.Machine // of the session record, or nil
	back        core.Event    // its last event: Backed or Unbacked
	obs         []*observing  // observed sessions of other nodes
	shut        bool          // closed, finally

	born     time.Duration
	rate     float64          // of its clocks against true time
	frozen   [2]time.Duration // true time of the last suspend, which stops the monotonic clock
	thawed   time.Duration    // sum of the suspends before
	stopped  [2]time.Duration // true time of the last stop, which no clock shows
	unseen   time.Duration    // sum of the stops before
	jumped   time.Duration    // sum of the jumps of the wall clock
	asleep   time.Duration    // true time until which it runs nothing
	down     time.Duration    // last true time at which it was not up
	tried    time.Duration    // true time of the last single attempt, or of its answer
	wakeAt   time.Duration
	lags     time.Duration // true time until which its server answers reads with the state at sees
	sees     time.Duration
	watching bool

	nextID  uint64
	pending map[uint64]string // requests without an answer
	polite  bool              // releases its grants soon
	keeps   bool              // never releases its grants
	won     int
	lost    int // grants that have expired

	token    core.Token // of the present tenure, 0 if none
	ended    bool       // its end was reported
	validity core.Validity
	working  bool // guarded work may run
}

// boot starts the process, or restarts it with a new nonce and a new origin of its clocks.
func (n *node) boot() {
	n.incarnation++
	n.born, n.rate = n.w.Elapsed(), 1+float64(n.drift())/1e6
	n.stopped, n.unseen = [2]time.Duration{}, 0
	n.frozen, n.thawed, n.jumped, n.asleep, n.wakeAt = [2]time.Duration{}, 0, 0, 0, 0
	n.down, n.lags = n.w.Elapsed(), 0
	n.pending, n.token, n.working, n.watching = map[uint64]string{}, 0, false, false
	cfg := n.w.opt.cfg
	if n.w.mixed && n.i%2 == 1 {
		cfg.TTL, cfg.Renew = mixedTTL, mixedTTL/3
	}
	cfg.Owner, cfg.Nonce = fmt.Sprint("node", n.i), n.nonce()
	cfg.Fair = n.w.fair == 1 || n.w.fair == 2 && n.i%2 == 0
	cfg.Jitter = func() float64 { return float64(n.w.Number("spread", 0, 1000)) / 1001 }
	cfg.Common = &core.Common{}
	n.keep, n.back, n.shut, n.obs = nil, nil, false, nil
	if !cfg.Forever && (n.w.shared == 1 || n.w.shared == 2 && n.i%2 == 0) {
		keeper := cfg
		keeper.Keeper, keeper.Fair, cfg.Shared, keeper.Common = true, false, true, nil
		n.keep = core.New(keeper)
	}
	n.cfg = cfg
	n.m = core.New(cfg)
	if n.keep != nil {
		n.later(0, func() { n.stepKeeper(core.Acquire{Wait: true}) })
	}
}

// drift returns the rate error of the clocks in millionths, of either sign; no error is the
// harmless choice.
func (n *node) drift() int {
	d := n.w.Number("drift", 0, 2*n.w.opt.drift)
	if d%2 == 1 {
		return -(d + 1) / 2
	}
	return d / 2
}

// nonce returns the nonce of the node's present session.
func (n *node) nonce() string { return fmt.Sprint(n.i, ".", n.incarnation) }

func (n *node) reading() core.Reading {
	now := n.w.Elapsed()
	run := time.Duration(float64(now-n.born-n.missed()) * n.rate)
	still := n.thawed + max(0, min(now, n.frozen[1])-n.frozen[0])
	return core.Reading{Mono: run - time.Duration(float64(still)*n.rate), Boot: run,
		Wall: run + n.jumped}
}

// cut carries out "cut NODE for TIME": the node and the store do not reach each other.
func (n *node) cut(a sim.Args) {
	n.lose(n.i, n.w.store(), a.Span(2))
	n.lose(n.w.store(), n.i, a.Span(2))
}

// halt carries out "halt NODE for TIME": no node reaches the store.
func (n *node) halt(a sim.Args) {
	for _, n := range n.w.nodes {
		n.cut(a)
	}
}

// mute carries out "mute NODE for TIME": the store hears the node, but its answers are lost.
func (n *node) mute(a sim.Args) { n.lose(n.w.store(), n.i, a.Span(2)) }

func (n *node) lose(from, to int, d time.Duration) {
	n.w.Cut(from, to)
	n.w.After(d, func() { n.w.Mend(from, to) })
}

// lag carries out "lag NODE for TIME": its server has been replaced as leader, and still answers
// reads.
func (n *node) lag(a sim.Args) {
	if n.lags <= n.w.Elapsed() {
		n.sees = n.w.Elapsed()
	}
	n.lags = n.w.Elapsed() + a.Span(2)
}

// pause carries out "pause NODE for TIME": the process runs nothing, but its clocks continue.
func (n *node) pause(a sim.Args) {
	n.asleep = max(n.asleep, n.w.Elapsed()+a.Span(2))
	n.down = max(n.down, n.asleep)
}

// suspend carries out "suspend NODE for TIME": the process runs nothing, and its monotonic clock
// stands still.
func (n *node) suspend(a sim.Args) {
	now, d := n.w.Elapsed(), a.Span(2)
	if n.asleep > now {
		return
	}
	n.thawed += n.frozen[1] - n.frozen[0]
	n.frozen = [2]time.Duration{now, now + d}
	n.asleep = now + d
	n.down = max(n.down, n.asleep)
}

// jump carries out "jump NODE by TIME": the wall clock is set, ahead or back.
func (n *node) jump(a sim.Args) { n.jumped += a.Span(2) }

// restart carries out "restart NODE": the process is killed and comes back at once.
func (n *node) restart(sim.Args) { n.boot() }

// close carries out "close NODE for TIME": the session is closed, and another one is opened later.
func (n *node) close(a sim.Args) {
	if n.w.Chance("abandons", 0.3) {
		n.later(0, func() { n.step(core.Abandon{Token: n.token}) })
	}
	n.later(n.w.Span("closes-later", 0, 15*time.Second), func() {
		n.shut = true
		n.step(core.Close{})
	})
	n.later(a.Span(2), n.boot)
}

// wants carries out "acquire NODE once|wait TIME": the node gives up after that time, if it is not
// 0.
func (n *node) wants(a sim.Args) {
	wait, patience := a.Word(1) == "wait", a.Span(2)
	n.later(0, func() { n.acquire(wait, patience) })
}

// awaken ends a pause or a suspend.
func (n *node) awaken() {
	n.asleep = 0
	n.frozen[1] = min(n.frozen[1], max(n.frozen[0], n.w.Elapsed()))
	n.stopped[1] = min(n.stopped[1], max(n.stopped[0], n.w.Elapsed()))
}

// step passes an event to the machine of the lease, once the process is awake.
func (n *node) step(ev core.Event) {
	if n.asleep > n.w.Elapsed() {
		n.later(0, func() { n.step(ev) })
		return
	}
	for _, e := range n.m.Step(n.reading(), ev) {
		n.carryOut(e)
	}
	if n.shut && n.keep != nil && n.m.Quiet() && !n.m.Left() {
		if up, ok := n.back.(core.Backed); ok {
			n.back = nil
			n.stepKeeper(core.Release{Token: up.Token})
		}
		n.stepKeeper(core.Close{})
	}
	n.others()
	n.arm()
}

// others lets the machine continue because of what an observer has learnt.
func (n *node) others() {
	for range n.cfg.Common.Ready() {
		n.later(0, func() { n.step(core.Tick{}) })
	}
}

// stepKeeper passes an event to the machine of the session record, and its effects to the machine
// of the lease.
func (n *node) stepKeeper(ev core.Event) {
	if n.asleep > n.w.Elapsed() {
		n.later(0, func() { n.stepKeeper(ev) })
		return
	}
	if n.m.Left() { // the session has ended, and its record is left to expire
		return
	}
	for _, e := range n.keep.Step(n.reading(), ev) {
		n.carryOutKeeper(e)
	}
	n.arm()
}

func (n *node) carryOutKeeper(e core.Effect) {
	w, nonce := n.w, n.nonce()
	switch e := e.(type) {
	case core.Load:
		w.call(n, e, func() core.Event {
			r, v := w.readBy(n, nonce)
			return core.Loaded{Op: e.Op, Record: r, Version: v}
		}, core.Loaded{Op: e.Op, Err: errTest}, n.stepKeeper)
		return
	case core.Swap:
		w.call(n, e, func() core.Event {
			return w.swapBy(n, nonce, e)
		}, core.Swapped{Op: e.Op, Err: errTest}, n.stepKeeper)
		return
	}
	w.Note("node %d, session: %T%+v", n.i, e, e)
	ev, ok := core.Told(e)
	if !ok {
		return
	}
	n.back = ev
	n.step(ev)
	if _, ended := ev.(core.Unbacked); ended && !n.shut {
		n.down = w.Elapsed() // its place names a tenure of the session that is over
		n.later(0, func() { n.stepKeeper(core.Acquire{Wait: true}) })
	}
}

// arm wakes the machine when it wants, rarely a little late.
func (n *node) arm() {
	at, ok := n.m.Wake()
	if n.keep != nil {
		if sooner, wants := n.keep.Wake(); wants && (!ok || sooner < at) {
			at, ok = sooner, true
		}
	}
	for _, o := range n.obs {
		if sooner, wants := o.core.Wake(); wants && (!ok || sooner < at) {
			at, ok = sooner, true
		}
	}
	if !ok {
		return
	}
	wait := time.Duration(float64(at-n.reading().Mono)/n.rate) + 1
	if n.w.Chance("wakes-late", 0.05) {
		wait += n.w.Span("late-by", 0, 200*time.Millisecond)
	}
	now := n.w.Elapsed()
	due := now + max(wait, time.Millisecond)
	if n.wakeAt > now && n.wakeAt <= due {
		return
	}
	n.wakeAt = due
	incarnation := n.incarnation
	n.w.After(due-now, func() {
		if n.incarnation != incarnation {
			return
		}
		if n.keep != nil {
			n.stepKeeper(core.Tick{})
		}
		for _, o := range n.obs {
			n.stepObserver(o, core.Tick{})
		}
		n.step(core.Tick{})
	})
}

func (n *node) carryOut(e core.Effect) {
	w := n.w
	switch e := e.(type) {
	case core.Load:
		w.call(n, e, func() core.Event {
			r, v := w.readBy(n, lease)
			return core.Loaded{Op: e.Op, Record: r, Version: v}
		}, core.Loaded{Op: e.Op, Err: errTest}, n.step)
		return // the message is in the story
	case core.Swap:
		w.call(n, e, func() core.Event {
			return w.swapBy(n, lease, e)
		}, core.Swapped{Op: e.Op, Err: errTest}, n.step)
		return
	case core.LoadSession:
		w.call(n, e, func() core.Event {
			r, v := w.readBy(n, e.Nonce)
			return core.SessionLoaded{Op: e.Op, Record: r, Version: v}
		}, core.SessionLoaded{Op: e.Op, Err: errTest}, n.step)
		return
	case core.EndSession:
		w.call(n, e, func() core.Event { return w.endSession(n, e) },
			core.SessionEnded{Op: e.Op, Err: errTest}, n.step)
		return
	case core.Follow:
		n.follow(e)
	case core.Enqueue:
		w.call(n, e, func() core.Event {
			return core.Enqueued{Op: e.Op, Ahead: w.enqueue(e.Place)}
		},
			core.Enqueued{Op: e.Op, Err: errTest}, n.step)
		return
	case core.Leave:
		w.call(n, e, func() core.Event {
			w.leave(e.Places)
			return core.Left{Op: e.Op}
		}, core.Left{Op: e.Op, Err: errTest}, n.step)
		return
	case core.Watch:
		if n.watching = e.On && w.watch; n.watching {
			w.hint(n)
			n.watchFails()
		}
	case core.Begin:
		n.begin(e)
	case core.Extend:
		n.extend(e.Token, e.Validity)
	case core.End:
		n.end(e)
	case core.Drained:
		n.working = n.working && e.Token != n.token
	case core.Answer:
		n.answered(e)
	}
	w.Note("node %d: %T%+v", n.i, e, e)
}

// watchFails ends the watch some time, in some histories, and begins it again.
func (n *node) watchFails() {
	if !n.w.Chance("watch-fails", 0.2) {
		return
	}
	n.later(n.w.Span("watched-for", 0, 20*time.Second), func() {
		if !n.watching {
			return
		}
		n.watching = false
		n.step(core.Unwatched{})
		n.later(n.cfg.Retry, func() {
			if n.m.Watching() {
				n.watching = true
				n.w.hint(n)
			}
		})
	})
}

func (n *node) begin(e core.Begin) {
	before, ok := n.w.before[e.Token]
	if !ok || before > e.Previous || before != e.Previous && !n.w.shows {
		n.w.Fail("node %d: tenure %d is said to follow %d, and follows %d", n.i, e.Token,
			e.Previous, before)
	}
	switch {
	case n.token != 0 && !n.ended:
		n.w.Fail("node %d begins %d within %d", n.i, e.Token, n.token)
	case e.Token <= n.w.highest && !n.w.opt.fenced: // a stopped node may learn of its tenure late
		n.w.Fail("node %d got token %d after %d", n.i, e.Token, n.w.highest)
	}
	n.w.highest = max(n.w.highest, e.Token)
	n.w.grants++
	n.token, n.ended, n.working = e.Token, false, true
	n.extend(e.Token, e.Validity)
}

func (n *node) extend(token core.Token, v core.Validity) {
	if token != n.token || n.ended {
		n.w.Fail("node %d extends %d, has %d", n.i, token, n.token)
	}
	if n.w.opt.fromAnswer {
		v.Sent = n.reading()
	}
	n.validity = v
}

// valid reports whether work of this node may be running, by its own clocks.
func (n *node) valid() bool {
	return n.working && n.validity.Remaining(n.reading()) > 0
}

func (n *node) end(e core.End) {
	if e.Token != n.token || n.ended {
		n.w.Fail("node %d told twice or too early of the end of %d", n.i, e.Token)
	}
	n.ended = true
	switch e.Why {
	case core.Expired:
		n.lost++
	case core.TakenOver, core.RecordDeleted, core.Released:
		n.working = false
	case core.Closed: // its work may run as long as the tenure is valid
	}
	if e.Why == core.Expired && !n.keeps && n.w.Chance("releases-expired", 0.5) {
		n.release(n.w.Span("drains", 0, 2*time.Second))
	}
}

func (n *node) answered(a core.Answer) {
	kind, ok := n.pending[a.ID]
	if !ok {
		n.w.Fail("node %d: second answer to %d", n.i, a.ID)
	}
	delete(n.pending, a.ID)
	if kind == "once" {
		n.tried = n.w.Elapsed()
	}
	if kind == "release" && a.Blank.Version != "" {
		n.w.blanks = append(n.w.blanks, a.Blank)
	}
	if kind == "release" || a.Outcome != core.Acquired {
		return
	}
	if a.Token != n.token || n.ended {
		n.w.Fail("node %d granted %d, has %d", n.i, a.Token, n.token)
	}
	n.won++
	if n.polite {
		n.release(time.Second)
	} else if !n.keeps && !n.w.Chance("keeps", 0.25) {
		n.release(n.w.Span("holds", 0, 30*time.Second))
	}
}

// acquire asks for the lease, and gives up when its patience ends.
func (n *node) acquire(wait bool, patience time.Duration) {
	n.nextID++
	id := n.nextID
	n.pending[id] = map[bool]string{false: "once", true: "wait"}[wait]
	ev := core.Acquire{ID: id, Wait: wait}
	if len(n.w.blanks) > 0 && n.w.Chance("told-how-it-was-left", 0.5) { // by its last holder, once
		ev.From = n.w.blanks[len(n.w.blanks)-1-n.w.Number("how-long-ago", 0,
			min(3, len(n.w.blanks)-1))]
	}
	n.step(ev)
	if patience > 0 {
		n.later(patience, func() { n.step(core.Cancel{ID: id}) })
	}
}

// release ends the work of the present tenure and releases it.
func (n *node) release(d time.Duration) {
	token := n.token
	n.later(d, func() {
		if n.token == token {
			n.working = false
		}
		n.nextID++
		n.pending[n.nextID] = "release"
		n.step(core.Release{ID: n.nextID, Token: token})
	})
}

// later runs f in this incarnation, once the process is awake.
func (n *node) later(d time.Duration, f func()) {
	incarnation := n.incarnation
	n.w.After(d, func() {
		switch now := n.w.Elapsed(); {
		case n.incarnation != incarnation:
		case n.asleep > now:
			n.later(n.asleep-now, f)
		default:
			f()
		}
	})
}
