package core_test

import (
	"slices"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// observing is a session that a node observes for its lease.
type observing struct {
	nonce    string
	core     *core.Observer
	watching bool
}

// looks carries out "look NODE on|off": the lease is followed, whether or not the node wants it.
func (n *node) looks(a sim.Args) {
	on := a.Word(1) == "on"
	n.later(0, func() { n.step(core.Look{On: on}) })
}

// follow starts or stops the observation of a session.
func (n *node) follow(e core.Follow) {
	if e.On {
		o := &observing{nonce: e.Nonce, core: core.NewObserver(n.cfg, e.Nonce)}
		n.obs = append(n.obs, o)
		n.stepObserver(o, core.Tick{})
		return
	}
	i := slices.IndexFunc(n.obs, func(o *observing) bool { return o.nonce == e.Nonce })
	if i < 0 {
		n.w.Fail("node %d ends the observation of %s, which it has not begun", n.i, e.Nonce)
		return
	}
	o := n.obs[i]
	n.obs = slices.Delete(n.obs, i, i+1)
	n.stepObserver(o, core.Close{})
}

func (n *node) stepObserver(o *observing, ev core.Event) {
	if n.asleep > n.w.Elapsed() {
		n.later(0, func() { n.stepObserver(o, ev) })
		return
	}
	w := n.w
	for _, e := range o.core.Step(n.reading(), ev) {
		switch e := e.(type) {
		case core.LoadSession:
			w.call(n, e, func() core.Event {
				r, v := w.readBy(n, e.Nonce)
				return core.SessionLoaded{Op: e.Op, Record: r, Version: v}
			}, core.SessionLoaded{Op: e.Op, Err: errTest}, func(ev core.Event) {
				n.stepObserver(o, ev)
			})
		case core.EndSession:
			w.call(n, e, func() core.Event { return w.endSession(n, e) },
				core.SessionEnded{Op: e.Op, Err: errTest}, func(ev core.Event) {
					n.stepObserver(o, ev)
				})
		case core.Watch:
			o.watching = e.On && w.watch
			w.Note("node %d observes %s: %v", n.i, o.nonce, e.On)
		}
	}
	n.others()
	n.arm()
}

// hintOf notifies the observers of a session that its record has been written.
func (w *world) hintOf(name string) {
	r, _ := w.read(name)
	ev := core.Changed{Record: r}
	for _, n := range w.nodes {
		for _, o := range n.obs {
			if o.watching && o.nonce == name {
				incarnation := n.incarnation
				w.Send(w.store(), n.i, ev, func() {
					if n.incarnation == incarnation {
						n.stepObserver(o, ev)
					}
				})
			}
		}
	}
}
