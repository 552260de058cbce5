package core_test

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// node is one process: a machine, its clocks, and a user of the lease.
type node struct {
	w    *world
	i    int
	life int // counts restarts
	m    *core.Machine

	born     time.Duration
	rate     float64          // of its clocks against true time
	frozen   [2]time.Duration // true time of the last suspend: the monotonic clock stands still
	thawed   time.Duration    // sum of the suspends before
	jumped   time.Duration    // of the wall clock
	asleep   time.Duration    // true time until which it runs nothing
	wakeAt   time.Duration
	watching bool

	nextID  uint64
	pending map[uint64]string // requests without an answer
	polite  bool              // releases what it gets, soon
	won     int

	token    uint64 // of the present tenure, 0 without
	ended    bool   // it was told so
	validity core.Validity
	working  bool          // guarded work may run
	workEnd  time.Duration // own monotonic time at which it ends at the latest, if closed
}

// boot starts the process, again if it has run before: new nonce, new origin of its clocks.
func (n *node) boot() {
	n.life++
	n.born, n.rate = n.w.now, 1+(n.w.rnd.Float64()*2-1)*n.w.opt.drift
	n.frozen, n.thawed, n.jumped, n.asleep, n.wakeAt = [2]time.Duration{}, 0, 0, 0, 0
	n.pending, n.token, n.working, n.watching = map[uint64]string{}, 0, false, false
	cfg := n.w.opt.cfg
	if n.w.opt.mixed && n.i%2 == 1 {
		cfg.TTL, cfg.Renew = mixedTTL, mixedTTL/3
	}
	cfg.Owner, cfg.Nonce = fmt.Sprint("node", n.i), fmt.Sprint(n.i, ".", n.life)
	cfg.Jitter = n.w.rnd.Float64
	n.m = core.New(cfg)
}

func (n *node) reading() core.Reading {
	run := time.Duration(float64(n.w.now-n.born) * n.rate)
	still := n.thawed + max(0, min(n.w.now, n.frozen[1])-n.frozen[0])
	return core.Reading{Mono: run - time.Duration(float64(still)*n.rate), Boot: run, Wall: run + n.jumped}
}

// suspend stops the process and its monotonic clock.
func (n *node) suspend(d time.Duration) {
	if n.asleep > n.w.now {
		return
	}
	n.thawed += n.frozen[1] - n.frozen[0]
	n.frozen = [2]time.Duration{n.w.now, n.w.now + d}
	n.asleep = n.w.now + d
}

// awaken ends a pause or a suspend.
func (n *node) awaken() {
	n.asleep = 0
	n.frozen[1] = min(n.frozen[1], max(n.frozen[0], n.w.now))
}

// step hands an event to the machine, when the process is awake.
func (n *node) step(ev core.Event) {
	if n.asleep > n.w.now {
		life := n.life
		n.w.after(n.asleep-n.w.now, func() {
			if n.life == life {
				n.step(ev)
			}
		})
		return
	}
	for _, e := range n.m.Step(n.reading(), ev) {
		fmt.Fprintf(n.w.trace, "%v %d %T%v -> %T%v\n", n.w.now, n.i, ev, ev, e, e)
		n.carryOut(e)
	}
	n.arm()
}

// arm wakes the machine when it wants, seldom a little late.
func (n *node) arm() {
	at, ok := n.m.Wake()
	if !ok {
		return
	}
	wait := time.Duration(float64(at-n.reading().Mono)/n.rate) + 1
	if n.w.chance(0.05) {
		wait += n.w.between(0, 200*time.Millisecond)
	}
	due := n.w.now + max(wait, time.Millisecond)
	if n.wakeAt > n.w.now && n.wakeAt <= due {
		return
	}
	n.wakeAt = due
	life := n.life
	n.w.after(due-n.w.now, func() {
		if n.life == life {
			n.step(core.Tick{})
		}
	})
}

func (n *node) carryOut(e core.Effect) {
	w := n.w
	switch e := e.(type) {
	case core.Load:
		w.call(n, func() core.Event {
			return core.Loaded{Op: e.Op, Record: w.record, Version: w.mark()}
		}, core.Loaded{Op: e.Op, Err: errTest})
	case core.Swap:
		w.call(n, func() core.Event { return w.swap(e) }, core.Swapped{Op: e.Op, Err: errTest})
	case core.Watch:
		n.watching = e.On && w.opt.watch
		if n.watching {
			rec := w.record
			w.after(w.delay(), func() { n.step(core.Changed{Record: rec}) })
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
}

func (n *node) begin(e core.Begin) {
	switch {
	case n.token != 0 && !n.ended:
		n.w.breaks("node %d begins %d within %d", n.i, e.Token, n.token)
	case e.Token <= n.w.highest:
		n.w.breaks("node %d got token %d after %d", n.i, e.Token, n.w.highest)
	}
	n.w.highest = e.Token
	n.w.grants++
	n.token, n.ended, n.working, n.workEnd = e.Token, false, true, 1<<62
	n.extend(e.Token, e.Validity)
}

func (n *node) extend(token uint64, v core.Validity) {
	if token != n.token || n.ended {
		n.w.breaks("node %d extends %d, has %d", n.i, token, n.token)
	}
	if n.w.opt.fromAnswer {
		v.Sent = n.reading()
	}
	n.validity = v
	for _, o := range n.w.nodes {
		if o != n && o.valid() {
			n.w.breaks("node %d holds with token %d while node %d holds with %d", n.i, n.token, o.i, o.token)
		}
	}
}

// valid reports whether work of this node may be running, by its own clocks.
func (n *node) valid() bool {
	r := n.reading()
	return n.working && n.validity.Remaining(r) > 0 && r.Mono < n.workEnd
}

func (n *node) end(e core.End) {
	if e.Token != n.token || n.ended {
		n.w.breaks("node %d told twice or too early of the end of %d", n.i, e.Token)
	}
	n.ended = true
	switch e.Why {
	case core.TakenOver, core.RecordDeleted, core.Released:
		n.working = false
	case core.Closed:
		n.workEnd = n.reading().Mono + n.w.opt.cfg.Drain
	}
	if e.Why == core.Expired && n.w.rnd.IntN(2) == 0 {
		n.release(n.w.between(0, 2*time.Second))
	}
}

func (n *node) answered(a core.Answer) {
	kind, ok := n.pending[a.ID]
	if !ok {
		n.w.breaks("node %d: second answer to %d", n.i, a.ID)
	}
	delete(n.pending, a.ID)
	if kind != "acquire" || a.Outcome != core.Acquired {
		return
	}
	if a.Token != n.token || n.ended {
		n.w.breaks("node %d granted %d, has %d", n.i, a.Token, n.token)
	}
	n.won++
	if n.polite {
		n.release(time.Second)
	} else if n.w.rnd.IntN(4) > 0 {
		n.release(n.w.between(0, 30*time.Second))
	}
}

// acquire asks, and sometimes gives up.
func (n *node) acquire(wait bool) {
	n.nextID++
	id := n.nextID
	n.pending[id] = "acquire"
	n.step(core.Acquire{ID: id, Wait: wait})
	if n.w.chance(0.3) {
		n.later(n.w.between(0, 5*time.Second), func() { n.step(core.Cancel{ID: id}) })
	}
}

// release ends the work of the present tenure and gives it up.
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

// later runs f in this life, when the process is awake.
func (n *node) later(d time.Duration, f func()) {
	life := n.life
	n.w.after(d, func() {
		switch {
		case n.life != life:
		case n.asleep > n.w.now:
			n.later(n.asleep-n.w.now, f)
		default:
			f()
		}
	})
}
