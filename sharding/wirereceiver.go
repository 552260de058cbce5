package sharding

import (
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/linear"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// receiver is the process to which other members send messages for entities. It is not an actor: a
// message reaches the mailbox of its entity in the goroutine that reads the connection. It cannot
// be stopped.
type receiver struct{ l *binding }

// admission lists the members from which the receiver accepts messages.
type admission struct {
	view    *membership.View
	members map[string]core.Member // by id
}

// arrived is a message of another member that the region must know of.
type arrived core.Arrived

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*arrived) IgnoreDeadLetterLogging() {}

// confirmed is a confirmation of deliveries.
type confirmed struct {
	from    core.Member
	shard   int
	numbers []uint64
}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*confirmed) IgnoreDeadLetterLogging() {}

// SendUserMessage implements actor.Process.
func (r *receiver) SendUserMessage(_ *actor.PID, message any) {
	_, msg, _ := actor.UnwrapEnvelope(message)
	env, ok := msg.(*envelope)
	if !ok {
		r.l.refuse("", message, ErrInvalid)
		return
	}
	a := r.l.admits.Load()
	if a == nil {
		return // the member is not up, or was removed
	}
	h, manifest, payload, err := wire.Open(env, a.view.Cluster)
	if err == nil && manifest != wire.ShardingData {
		err = errors.New("not a message for entities")
	}
	if err != nil {
		r.l.ignore(manifest, err)
		return
	}
	from, listed := a.members[h.Member]
	if !listed || from.Incarnation != h.From || h.To != 0 && h.To != a.view.Self.Incarnation {
		return
	}
	r.receive(from, payload)
}

// SendSystemMessage implements actor.Process.
func (r *receiver) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (r *receiver) Stop(*actor.PID) {}

// receive processes a concord.v1.ShardingData.
func (r *receiver) receive(from core.Member, payload []byte) {
	var c names
	var t types
	err := fields(payload, func(n protowire.Number, typ protowire.Type, _ uint64, b []byte) error {
		switch {
		case typ != protowire.BytesType:
		case n == fieldParcels:
			r.message(from, b, &c, &t)
		case n == fieldConfirmed:
			r.confirmed(from, b)
		}
		return nil
	})
	if err != nil {
		r.l.ignore(wire.ShardingData, err)
	}
}

func (r *receiver) message(from core.Member, b []byte, c *names, t *types) {
	m, err := decodeWireMessage(b, c)
	if err == nil && m.shard >= len(r.l.shards) {
		err = errors.New("no such shard")
	}
	if err != nil {
		r.l.ignore(wire.ShardingData, err)
		return
	}
	d, sender, err := t.unpack(&m)
	if err == nil {
		if err = r.l.shards[m.shard].owns(m.entity); err != nil {
			d = core.Data{Shard: d.Shard, Token: d.Token, Number: d.Number}
		}
	}
	if err != nil && !errors.Is(err, errNoMessage) {
		r.l.ignore(wire.ShardingData, err)
		if sender != nil {
			contain.Send(r.l.system, sender, &actor.DeadLetterResponse{})
		}
	}
	if d.Number != 0 {
		r.l.shards[d.Shard].receive(from, d)
	}
}

func (r *receiver) confirmed(from core.Member, b []byte) {
	var m pb.ShardingConfirmed
	err := linear.Unmarshal(b, &m)
	if err == nil {
		err = fits(m.Shard, 0)
	}
	if err != nil {
		r.l.ignore(wire.ShardingData, err)
		return
	}
	contain.Send(r.l.system, r.l.control, &confirmed{from, int(m.Shard), m.Numbers})
}

// receive accepts a message of another member.
func (s *hostedShard) receive(from core.Member, d core.Data) {
	s.mu.Lock()
	v := s.in.Take(from, d)
	if (v == lane.Accepted || v == lane.Awaited) && d.Delivery == 0 && d.Body.ID != "" {
		s.hand(d.Token, d.Body)
	}
	s.unlock()
	system, control := s.binding.system, s.binding.control
	switch {
	case v == lane.Strange:
		contain.Send(system, control, &rejected{from, d})
	case v == lane.Repeated:
		s.binding.counts.dropped.Add(1)
	case d.Delivery != 0:
		contain.Send(system, control, &arrived{from, d})
	case v == lane.Awaited:
		d.Body = core.Body{}
		contain.Send(system, control, &arrived{from, d})
	}
}

// rejected is a message of another member that met no tenure.
type rejected arrived

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*rejected) IgnoreDeadLetterLogging() {}

// ignore counts a protocol message that cannot be used.
func (l *binding) ignore(manifest wire.Manifest, err error) {
	l.counts.ignored.Add(1)
	if n, due := l.ignored.Due(l.clock.Now()); due {
		l.log.Warn("message of another member ignored", slog.Any("manifest", manifest), slog.Any("error", err),
			slog.Uint64("ignored", n))
	}
}
