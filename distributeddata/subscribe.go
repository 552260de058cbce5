package distributeddata

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
)

// subscribeTo implements Subscribe for keys and prefixes.
func subscribeTo[T crdt.Value[T]](r *Replicator, e Entries[T], to *actor.PID,
	adapt func(*Changed[T]) any) (stop func()) {
	r.tell(&Subscribe[T]{Key: e, Subscriber: to, Adapt: adapt})
	return func() { r.tell(&Unsubscribe[T]{Key: e, Subscriber: to}) }
}

func (m *Subscribe[T]) run(a *replica, _ func(any)) {
	text, exact, err := m.check(a)
	if err == nil && !a.subs.has(m.Subscriber, text, exact) {
		err = a.l.within(maxSubscriptions, a.subs.total+1, "")
	}
	if err != nil {
		a.log.Warn("subscription refused", slog.Any("error", err),
			slog.Any("subscriber", m.Subscriber))
		return
	}
	a.subscribe(m.Subscriber, text, exact, func(key string, old, now entryView, send func(any)) {
		k := m.Key.named(key)
		c := &Changed[T]{Key: k, Value: k.empty(), Old: k.empty(), Deleted: now.gone(),
			Expired: old.expired(now, a.l.ttls.clock.Now())}
		err := errExit // in case a codec does not return
		defer func() {
			if !now.store.Empty() {
				c.Err = err
			}
			adapted(a.l.r, c, m.Adapt, send)
		}()
		defer a.l.r.beginUserCall(&k.id).done()
		c.Value, err = k.load(now.store, now.seen)
		c.Old, _ = k.load(old.store, old.seen)
	})
}

// check returns an error if the subscription is not valid.
func (m *Subscribe[T]) check(a *replica) (text string, exact bool, err error) {
	switch {
	case m.Key == nil:
		return "", false, fmt.Errorf("%w: no key to subscribe to", ErrInvalid)
	case m.Subscriber == nil:
		return "", false, fmt.Errorf("%w: subscription to %q without a subscriber",
			ErrInvalid, m.Key)
	case !a.here(m.Subscriber):
		return "", false, fmt.Errorf("%w: subscriber %v to %q is not an actor of this member, %s",
			ErrInvalid, m.Subscriber, m.Key, a.l.system.Address())
	}
	return m.Key.pattern()
}

// here reports whether pid is an actor of this member.
func (a *replica) here(pid *actor.PID) bool {
	return pid.Address == a.l.system.Address() || pid.Address == a.l.r.pid.Address
}

// failed implements failing.
func (c *Changed[T]) failed(err error) {
	c.Err = errors.Join(c.Err, fmt.Errorf("distributeddata: Adapt: %w", err))
}

func (m *Unsubscribe[T]) run(a *replica, _ func(any)) {
	if m.Subscriber == nil || m.Key == nil {
		return
	}
	if text, exact, err := m.Key.pattern(); err == nil {
		a.unsubscribe(m.Subscriber, text, exact)
	}
}

// flushChanges is the message of FlushChanges. It is not answered.
type flushChanges struct{}

// FlushChanges notifies the subscribers of this member at once, without waiting for
// Config.NotifyInterval. The notices cover every update made through this member before the call,
// and the updates received from other members so far.
func (r *Replicator) FlushChanges() {
	r.flushed.tell()
	r.tell(&flushChanges{})
}

func (*flushChanges) run(a *replica, _ func(any)) { a.flush() }

func (*Subscribe[T]) refuse(error, *Replicator, func(any)) {}

func (*Unsubscribe[T]) refuse(error, *Replicator, func(any)) {}

func (*flushChanges) refuse(error, *Replicator, func(any)) {}

func (*Subscribe[T]) unanswered() {}

func (*Unsubscribe[T]) unanswered() {}

func (*flushChanges) unanswered() {}
