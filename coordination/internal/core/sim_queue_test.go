package core_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// enqueue writes a place into the queue of the lease, and returns the places ahead.
func (w *world) enqueue(p core.Place) (ahead []core.Place) {
	i := slices.IndexFunc(w.queue, func(q core.Place) bool { return q.Nonce == p.Nonce })
	if i < 0 {
		i, w.queue = len(w.queue), append(w.queue, p)
	}
	if w.queue[i].Beat < p.Beat {
		w.queue[i] = p
	}
	if w.opt.deafQueue {
		return nil
	}
	return slices.Clone(w.queue[:i])
}

// leave removes places from the queue.
func (w *world) leave(gone []core.Place) {
	w.queue = slices.DeleteFunc(w.queue, func(q core.Place) bool {
		return slices.ContainsFunc(gone, func(g core.Place) bool {
			return q.Nonce == g.Nonce && q.Beat <= g.Beat
		})
	})
}

// inOrder checks a claim when it is written: it must not overtake a waiter that came earlier and
// was up all the time. A single attempt does not wait, and needs no place.
func (w *world) inOrder(claim core.Record) {
	if !w.opt.order || claim.Nonce == "" || claim.Attempt != 1 {
		return
	}
	who := w.named(claim.Nonce)
	if who == nil || who.asks("once") || w.Elapsed()-who.tried < w.opt.cfg.TTL {
		return
	}
	for i, p := range w.queue {
		if p.Nonce == claim.Nonce {
			w.ordered += min(1, len(w.queue)-1-i)
			return
		}
		if n := w.named(p.Nonce); n != nil && n.asks("wait") && w.Elapsed()-n.down > w.opt.cfg.TTL {
			w.Fail("%s overtakes %s in the queue %v", claim.Nonce, p.Nonce, w.queue)
		}
	}
	if w.Elapsed()-who.down > w.opt.cfg.TTL {
		w.Fail("%s claims without a place in the queue %v", claim.Nonce, w.queue)
	}
}

// named returns the node whose present incarnation has the nonce, or nil.
func (w *world) named(nonce string) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.nonce() == nonce })
	if i < 0 {
		return nil
	}
	return w.nodes[i]
}

// asks reports whether a request of that kind has no answer yet.
func (n *node) asks(kind string) bool {
	for _, k := range n.pending {
		if k == kind {
			return true
		}
	}
	return false
}

// TestSimulation_NobodyIsOvertakenInAQueue plays histories with a reliable network and store, in
// which processes pause, suspend, crash, close, give up and come back. Waiters are served in order
// of arrival, unless they were down within the last TTL.
func TestSimulation_NobodyIsOvertakenInAQueue(t *testing.T) {
	opt := honest
	opt.order = true
	var grants, ordered atomic.Int64
	some := seeds.AtMost(2000)
	sim.Run(t, some, func(s *sim.World) {
		w := newWorld(s, opt)
		play(w)
		grants.Add(int64(w.grants))
		ordered.Add(int64(w.ordered))
	})
	t.Logf("%d tenures, %d of them while others stood behind", grants.Load(), ordered.Load())
	if ordered.Load() < int64(some.Count) {
		t.Error("the histories do not exercise what they should")
	}
}

// TestSimulation_OrderBites shows that the check notices a queue that does not order.
func TestSimulation_OrderBites(t *testing.T) {
	opt := honest
	opt.order, opt.deafQueue = true, true
	f := sim.Find(sim.Seeds{First: 1, Count: 1000, Whole: true}, history(opt))
	if f == nil {
		t.Fatal("no history shows the violation")
	}
	t.Logf("seed %d: %s", f.Seed, f.Text)
}

// orderFaults are the faults that leave the network and the store reliable.
var orderFaults = []string{"pause", "suspend", "jump", "restart", "close"}

// reliable removes the faults of the network and of the store.
func (w *world) reliable() {
	w.Faults = sim.Faults{Delay: time.Millisecond, Jitter: w.Jitter}
	w.errs = 0
}
