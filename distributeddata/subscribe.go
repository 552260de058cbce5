package distributeddata

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/causal"
)

// subscriptions are those of one replica's actor. A subscriber is told of the newest value it has not
// been told of, however many came in between.
type subscriptions struct {
	byKey map[string][]*subscriber
	keys  map[address]map[string]bool // of each subscriber
	dirty []string                    // keys with changes that nobody has been told of
	noted map[string]bool             // that are in dirty
}

// address is a PID as the key of a map.
type address struct{ host, id string }

func addressOf(pid *actor.PID) address { return address{pid.Address, pid.Id} }

type subscriber struct {
	pid  *actor.PID
	told causal.Store
	seen causal.Vector // when it was told
	// notice sends the message for the change from one state to another, if there is to be one.
	notice func(old, now causal.Store, oldSeen, nowSeen causal.Vector, send func(any))
}

func newSubscriptions() *subscriptions {
	return &subscriptions{byKey: map[string][]*subscriber{}, keys: map[address]map[string]bool{}, noted: map[string]bool{}}
}

func (s *subscriptions) add(key string, sub *subscriber) {
	s.remove(key, sub.pid)
	s.byKey[key] = append(s.byKey[key], sub)
	at := addressOf(sub.pid)
	if s.keys[at] == nil {
		s.keys[at] = map[string]bool{}
	}
	s.keys[at][key] = true
}

func (s *subscriptions) remove(key string, pid *actor.PID) {
	at := addressOf(pid)
	own := s.keys[at]
	if !own[key] {
		return
	}
	if delete(own, key); len(own) == 0 {
		delete(s.keys, at)
	}
	left := slices.DeleteFunc(s.byKey[key], func(o *subscriber) bool { return o.pid.Equal(pid) })
	if len(left) == 0 {
		delete(s.byKey, key)
		return
	}
	s.byKey[key] = left
}

// removeAll forgets a subscriber that has stopped.
func (s *subscriptions) removeAll(pid *actor.PID) {
	for key := range s.keys[addressOf(pid)] {
		s.remove(key, pid)
	}
}

// subscribed reports whether pid has any subscription.
func (s *subscriptions) subscribed(pid *actor.PID) bool { return len(s.keys[addressOf(pid)]) > 0 }

// changed notes keys; it reports whether anybody waits for one of them.
func (s *subscriptions) changed(keys []string) bool {
	for _, k := range keys {
		if len(s.byKey[k]) > 0 && !s.noted[k] {
			s.dirty = append(s.dirty, k)
			s.noted[k] = true
		}
	}
	return len(s.dirty) > 0
}

// tell sends what is new of so many keys, and reports whether that leaves others.
func (s *subscriptions) tell(most int, state func(key string) (causal.Store, causal.Vector), tell func(*subscriber, causal.Store, causal.Vector)) bool {
	for range min(most, len(s.dirty)) {
		key := s.dirty[0]
		now, seen := state(key)
		for _, sub := range s.byKey[key] {
			tell(sub, now, seen)
		}
		s.dirty = s.dirty[1:]
		delete(s.noted, key)
	}
	if len(s.dirty) > 0 {
		return true
	}
	s.dirty, s.noted = nil, map[string]bool{}
	return false
}

func (o *subscriber) tell(now causal.Store, seen causal.Vector, send func(*actor.PID, any)) {
	if o.told.SameValue(now) {
		return
	}
	old, before := o.told, o.seen
	o.told, o.seen = now, seen // first: notice may not return
	o.notice(old, now, before, seen, func(msg any) {
		if msg != nil {
			send(o.pid, msg)
		}
	})
}

func (m *Subscribe[T]) run(a *replica, _ func(any)) {
	if m.Subscriber == nil || m.Key.valid(Local) != nil {
		a.log.Warn("subscription refused", "key", m.Key.id, "subscriber", m.Subscriber)
		return
	}
	a.subscribe(m.Key.id, &subscriber{pid: m.Subscriber, notice: func(old, now causal.Store, oldSeen, nowSeen causal.Vector, send func(any)) {
		c := &Changed[T]{Key: m.Key, Value: m.Key.empty, Old: m.Key.empty, Deleted: now.Empty() || buried(now)}
		err := errExit // if a codec does not return
		defer func() {
			if !now.Empty() {
				c.Err = err
			}
			adapted(a.l.r, c, m.Adapt, send)
		}()
		defer a.l.r.host(&m.Key.id).done()
		c.Value, err = m.Key.load(now, nowSeen)
		c.Old, _ = m.Key.load(old, oldSeen)
	}})
}

// failed implements failing.
func (c *Changed[T]) failed(err error) {
	c.Err = errors.Join(c.Err, fmt.Errorf("distributeddata: Adapt: %w", err))
}

func (m *Unsubscribe[T]) run(a *replica, _ func(any)) {
	if m.Subscriber != nil {
		a.unsubscribe(m.Key.id, m.Subscriber)
	}
}

func (*Subscribe[T]) refuse(error, *Replicator, func(any)) {}

func (*Unsubscribe[T]) refuse(error, *Replicator, func(any)) {}

func (*Subscribe[T]) unanswered() {}

func (*Unsubscribe[T]) unanswered() {}
