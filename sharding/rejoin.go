package sharding

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding/internal/core"
)

// bind starts an incarnation of the region that an earlier incarnation of this process left, or of
// a new region.
func bind(l *binding) (*region, error) {
	incarnations, key := lifecycle.IncarnationsOf(l.system), "sharding "+l.cfg.Type
	r, kept, err := lifecycle.Handle(l.system, key, func() (*region, error) {
		present := lifecycle.NewPresent[binding](fmt.Sprintf("sharding %q", l.cfg.Type), ErrClosed)
		return &region{typ: l.cfg.Type, shards: l.cfg.Shards, numbered: l.cfg.numbered,
			present: present, origin: rand.Uint64()}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("sharding %q: %w", l.cfg.Type, err)
	}
	if r.numbered != l.cfg.numbered {
		return nil, fmt.Errorf(
			"sharding %q: %w: one incarnation of this member has workers of this type, another has entities", l.cfg.Type, ErrInvalid)
	}
	if r.shards != l.cfg.Shards {
		return nil, fmt.Errorf(
			"sharding %q: %w: %d shards, and %d in an earlier incarnation of this member", l.cfg.Type,
			ErrInvalid, l.cfg.Shards, r.shards)
	}
	if incarnations != nil && !kept {
		incarnations.OnLast(r.present.Last)
		incarnations.OnEnd(r.kept.refuse)
	}
	if kept {
		l.cfg.MinMembers = 0 // it joins a cluster that already has hosts
	}
	l.counts, l.clock = &r.counts, timer.ClockOf(l.system)
	l.log = l.system.Logger().With(slog.String("sharding", l.cfg.Type))
	l.members = membership.Attach(l.system)
	l.running, l.closed = make(chan struct{}), make(chan struct{})
	l.ended = func(err error) { r.present.Drop(l, err) }
	l.region = r
	if l.unobserve, err = r.observe(l, l.cfg.Meters); err != nil {
		return nil, fmt.Errorf("sharding %q: metrics: %w", l.cfg.Type, err)
	}
	if err := l.begin(key); err != nil {
		return nil, errors.Join(err, l.unobserve())
	}
	r.kept.pass(l)
	r.present.Begin(l, incarnations == nil)
	l.members.WhenUp(func(self membership.Member) { l.started.Do(func() { l.up(self) }) })
	return r, nil
}

// kept holds the messages of one incarnation that waited for a host when the incarnation ended,
// until the next incarnation takes them. The bounds of Config.Buffer, which they met, bound them.
type kept struct {
	mu       sync.Mutex
	from     *binding // nil: no messages
	messages []keptMessage
}

// keptMessage is a message of this process that waits for a shard.
type keptMessage struct {
	shard int
	body  core.Body
}

// follows reports whether another incarnation may follow.
func (l *binding) follows() bool { return l.region.present.Follows() }

// leave keeps a message that still waits for a host when an incarnation ends, for the next
// incarnation. If none follows, or if its sender is an actor, which has ended with the incarnation,
// the message is refused. Ask sends its message again in the next incarnation.
func (l *binding) leave(shard int, b core.Body) {
	m := b.Value.(*outgoing)
	_, _, sender := actor.UnwrapEnvelope(m.value)
	switch {
	case !l.follows(), sender != nil && m.call == nil:
		l.refuse(b.ID, m, errStopped)
	case m.call != nil:
		l.answer(m, ErrClosed)
	default:
		k := &l.region.kept
		k.mu.Lock()
		defer k.mu.Unlock()
		k.from, k.messages = l, append(k.messages, keptMessage{shard, b})
	}
}

// take removes and returns the messages.
func (k *kept) take() (from *binding, messages []keptMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	from, messages = k.from, k.messages
	k.from, k.messages = nil, nil
	return from, messages
}

// pass makes the messages the first ones of an incarnation.
func (k *kept) pass(to *binding) {
	_, messages := k.take()
	for _, m := range messages {
		to.pass(m)
	}
}

// refuse refuses the messages, because no incarnation follows.
func (k *kept) refuse() {
	from, messages := k.take()
	for _, m := range messages {
		from.refuse(m.body.ID, m.body.Value, errStopped)
	}
}
