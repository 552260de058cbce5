package core_test

import (
	"fmt"

	"github.com/concord-go/concord/sharding/internal/core"
)

// delivery is the true state of a message that is to be handled at least once.
type delivery struct {
	number uint64
	again  bool // it may have been handled, as far as its entity is told

	state *deliveryState
}

// deliveryState is shared by all copies of a delivery.
type deliveryState struct {
	origin    core.Member
	handled   bool   // it was handled
	effective bool   // it was handled, and the tenure was valid after that
	under     uint64 // tenure under which it was last effective
	confirmed bool
}

// delivers begins a delivery.
func (n *node) delivers(m message) {
	m.delivery = &delivery{number: uint64(n.counter), state: &deliveryState{origin: n.me()}}
	n.w.deliveries[m.messageID] = m.delivery
	n.step(core.BeginDelivery{
		Shard: m.entity % n.w.opt.shards, Number: m.number, Body: core.Body{
			ID: fmt.Sprint(m.entity), Value: m, Size: 10},
	})
}

// departs checks a delivery that its sender sends. A copy that is under way when another one is
// confirmed may still be handled.
func (n *node) departs(d core.Data) {
	if m := d.Body.Value.(message); d.Delivery != 0 && m.state.confirmed {
		n.w.Fail("delivery %v is sent after its confirmation", m)
	}
}

// arrives returns the copy of a delivery that its entity gets.
func (n *node) arrives(e core.Deliver) message {
	m := e.Body.Value.(message)
	if m.number != e.Receipt.Number || m.state.origin != e.Receipt.From {
		n.w.Fail("delivery %v comes as number %d of %v", m, e.Receipt.Number, e.Receipt.From)
	}
	m.delivery = &delivery{number: e.Receipt.Number, again: e.Receipt.Again, state: m.state}
	return m
}

// handleDelivery checks a delivery that an entity begins to handle.
func (w *world) handleDelivery(e *entity, m message) {
	d := m.state
	if d.handled && !m.again {
		w.Fail("delivery %v is handled again, and the entity is not told", m)
	}
	if d.effective && d.under == e.token {
		w.Fail("delivery %v is handled twice in one tenure", m)
	}
	if d.handled {
		w.stat.again++
		w.stat.handled-- // counts messages, not attempts
	}
	d.handled = true
}

// handled reports the end of the handler of a delivery. If the entity has failed, or the tenure has
// ended meanwhile, it counts as not handled.
func (h *host) handled(e *entity) {
	d := e.current.delivery
	e.current.delivery = nil
	if d == nil {
		return
	}
	ok := !e.failed && h.n.check(h.gen) && e.token == h.token
	if ok {
		d.state.effective, d.state.under = true, e.token
	}
	h.n.report(core.Handled{Shard: h.s, Token: e.token, From: d.state.origin,
		Number: d.number, OK: ok})
}

// unhandled reports a message that no entity will handle.
func (h *host) unhandled(b core.Body) {
	if d := b.Value.(message).delivery; d != nil {
		h.n.report(core.Handled{Shard: h.s, Token: h.token, From: d.state.origin, Number: d.number})
	}
}

// report passes an event from an entity to its region.
func (n *node) report(ev core.Handled) { n.after(0, func() { n.step(ev) }) }

func (n *node) concluded(e core.Conclude) {
	m := e.Body.Value.(message)
	switch e.Outcome {
	case core.Confirmed:
		d := m.state
		if !d.effective {
			n.w.Fail("delivery %v is confirmed, and was not handled", m)
		}
		if d.confirmed {
			n.w.Fail("delivery %v is concluded twice", m)
		}
		d.confirmed = true
		n.w.stat.delivered++
	default:
		if n.w.opt.planned {
			n.w.Fail("planned: delivery %v is not accepted", m)
		}
		delete(n.w.deliveries, m.messageID)
	}
}

// allDelivered reports whether every delivery of a member that lives was confirmed. A member that a
// fault still cuts off is excepted.
func (w *world) allDelivered() bool {
	h, ok := w.store.holder(coordName)
	if !ok {
		return false
	}
	c := w.node(h.member)
	for _, d := range w.deliveries {
		o := w.node(d.state.origin)
		cut := w.IsCut(c.i, o.i) || w.IsCut(o.i, c.i)
		if !d.state.confirmed && o.up && o.me() == d.state.origin && !cut && c.sees(o.me()) {
			return false
		}
	}
	return true
}
