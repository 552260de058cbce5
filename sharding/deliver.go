package sharding

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Deliver sends a message until the entity has handled it: at least once. It returns nil when
// Receive has returned without a panic, under a tenure that had not ended by then. What Receive has
// not stored is lost if the entity ends later. A message that is not confirmed is sent again, to
// whichever member has the shard: at once when the shard becomes active elsewhere, and otherwise
// after 1s, 2s, 4s and so on up to every 10s. If Receive panics each time, Deliver keeps sending
// until ctx ends.
//
// An entity may therefore handle a message more than once; see DeliveryOf. A host drops a copy of a
// message that it still holds, or that was among the last 1,024 handled in its shard. The next host
// of the shard does not know them. If this process ends, nothing sends the message any more;
// whether it was handled is unknown. A caller that must know then stores the message with an id of
// its own, and sends it again with that id.
//
// Messages that are delivered at the same time are handled in any order. Those of one goroutine are
// handled in order, since Deliver waits; this also bounds the rate of a goroutine by the time of a
// round trip. A message takes memory on this member until Deliver returns; see Config.Buffer. Do
// not call Deliver from an actor, because it blocks. The context must end at some time, or Deliver
// may wait forever.
//
// ErrInvalid, ErrBufferFull, ErrUndelivered, ErrClosed and node.ErrRejoining mean that the message
// was certainly not handled. ErrUnknown means that ctx ended, or this member closed the region,
// before the message was confirmed. While the member rejoins, Deliver waits, and then continues.
// Close does not wait for Deliver.
func (f Ref[Msg]) Deliver(ctx context.Context, msg Msg) error {
	if err := f.r.made(); err != nil {
		return err
	}
	err := check(f.id, msg)
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", ErrUndelivered, context.Cause(ctx))
	default:
		err = f.r.deliver(ctx, f.id, msg)
	}
	return f.r.refused(err)
}

// Delivery identifies a message that was sent with Ref.Deliver.
type Delivery struct {
	// ID is different for each call of Deliver in the cluster, and the same whenever the message of
	// that call is handled. A sender that crashes and calls Deliver again with the same message
	// uses another ID.
	ID string
	// Again is false if the message has certainly not been handled before.
	Again bool
}

// DeliveryOf returns the delivery that the entity is handling, or false if the message was not sent
// with Deliver. Call it within Receive.
func DeliveryOf(ctx actor.Context) (Delivery, bool) {
	in := incarnationOf(ctx)
	if in == nil {
		return Delivery{}, false
	}
	d, ok := in.box.handling().(*incomingDelivery)
	if !ok {
		return Delivery{}, false
	}
	return Delivery{ID: fmt.Sprintf("%016x-%d", d.origin, d.number), Again: d.again}, true
}

// pendingDelivery is one call of Deliver. Only the goroutine of the call uses again.
type pendingDelivery struct {
	origin uint64
	number uint64
	again  bool // an earlier incarnation may have sent it
	done   chan conclusion
}

// conclusion is the end of a delivery in one incarnation.
type conclusion struct {
	err  error
	sent bool // the message may have been handled, in spite of the error
}

// incomingDelivery is a delivery at its host.
type incomingDelivery struct {
	value  any // message or *actor.MessageEnvelope
	origin uint64
	number uint64
	again  bool

	binding *binding
	shard   int
	token   uint64
	from    core.Member
}

// Messages for the control actor.
type (
	deliveryBegun core.BeginDelivery
	deliveryEnded core.EndDelivery
	handled       core.Handled
)

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*deliveryBegun) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*deliveryEnded) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*handled) IgnoreDeadLetterLogging() {}

// deliver continues a delivery from incarnation to incarnation.
func (r *region) deliver(ctx context.Context, id string, msg proto.Message) error {
	r.delivering.Add(1)
	defer r.delivering.Add(-1)
	d := &pendingDelivery{origin: r.origin, number: r.deliveries.Add(1)}
	for l := r.present.Load(); ; {
		if l != nil {
			end := l.deliver(ctx, id, msg, d)
			d.again = d.again || end.sent
			if !errors.Is(end.err, ErrClosed) {
				return d.certain(end.err)
			}
		}
		next, err := r.present.After(ctx, l)
		if err != nil {
			return d.certain(err)
		}
		l = next
	}
}

// certain returns err, or ErrUnknown if err says that the message was not handled although it may
// have been.
func (d *pendingDelivery) certain(err error) error {
	if err == nil || !d.again || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %v", ErrUnknown, err) //nolint:errorlint // it must not match the errors that exclude it
}

// deliver returns ErrClosed if this incarnation has ended before the delivery was confirmed.
func (l *binding) deliver(ctx context.Context, id string, msg proto.Message,
	d *pendingDelivery) conclusion {
	n, err := l.cfg.shardOf(id)
	if err != nil {
		return conclusion{err: err}
	}
	d.done = make(chan conclusion, 1)
	b := core.Body{ID: id, Value: &outgoing{value: msg, delivery: d}, Size: sizeOf(msg)}
	contain.Send(l.system, l.control, (*deliveryBegun)(&core.BeginDelivery{Shard: n,
		Number: d.number, Body: b, Again: d.again}))
	select {
	case end := <-d.done:
		return end
	case <-l.closed:
	case <-ctx.Done():
		contain.Send(l.system, l.control,
			(*deliveryEnded)(&core.EndDelivery{Shard: n, Number: d.number}))
	}
	select {
	case end := <-d.done: // it came first
		return end
	default:
	}
	if l.isClosed() { // if without an error, the control actor has stopped and has not sent it
		return conclusion{ErrClosed, l.err != nil}
	}
	return conclusion{err: fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx)), sent: true}
}

// beginDelivery begins a delivery.
func (c *control) beginDelivery(ctx actor.Context, ev core.BeginDelivery) {
	if c.quit || c.view != nil && c.view.Removed {
		ev.Body.Value.(*outgoing).delivery.conclude(conclusion{err: ErrClosed})
		return
	}
	c.step(ctx, ev)
}

// abandon ends the deliveries of this incarnation.
func (c *control) abandon() {
	for n := range c.binding.shards {
		for _, e := range c.region.Abandon(n) {
			conclude(e)
		}
	}
}

// conclude passes the end of a delivery to its caller.
func conclude(e core.Conclude) {
	var end conclusion
	switch e.Outcome {
	case core.Confirmed:
	case core.Full:
		end.err = ErrBufferFull
	case core.Unsent:
		end.err = ErrClosed
	case core.InDoubt:
		end = conclusion{ErrClosed, true}
	}
	e.Body.Value.(*outgoing).delivery.conclude(end)
}

// conclude passes the end of a delivery to its caller, unless it has one already.
func (d *pendingDelivery) conclude(end conclusion) {
	select {
	case d.done <- end:
	default:
	}
}

// unsendable ends a delivery to another member that cannot be sent there.
func (c *control) unsendable(ctx actor.Context, d core.Data, why error) {
	d.Body.Value.(*outgoing).delivery.conclude(conclusion{why, d.Again})
	c.step(ctx, core.EndDelivery{Shard: d.Shard, Number: d.Delivery})
}

// incoming returns the delivery that an entity of this member gets.
func (l *binding) incoming(e core.Deliver) *incomingDelivery {
	d := &incomingDelivery{number: e.Receipt.Number, again: e.Receipt.Again, binding: l,
		shard: e.Shard, token: e.Token, from: e.Receipt.From}
	switch v := e.Body.Value.(type) {
	case *outgoing:
		d.value, d.origin = v.value, v.delivery.origin
	case *incomingDelivery:
		d.value, d.origin = v.value, v.origin
	}
	if d.again {
		l.counts.redelivered.Add(1)
	}
	return d
}

// report tells the control actor whether the delivery was handled.
func (d *incomingDelivery) report(ok bool) {
	l := d.binding
	contain.Send(l.system, l.control, (*handled)(&core.Handled{Shard: d.shard, Token: d.token,
		From: d.from, Number: d.number, OK: ok}))
}
