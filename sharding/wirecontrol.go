package sharding

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// envelope wraps all messages of the protocol.
type envelope = pb.Envelope

// tell sends a message of the protocol.
func (c *control) tell(ctx actor.Context, e core.Tell) {
	switch m := e.Message.(type) {
	case core.Data:
		c.sendData(ctx, m)
		return
	case core.Confirm:
		c.binding.link(e.To).confirm(m)
		return
	case core.Sent: // what it counts goes first
		if c.owing(e.To) {
			c.binding.link(e.To).askTaken(c.flows[e.To].Mark())
		}
		return
	case core.Flush:
		s := c.binding.shards[m.Shard]
		s.mu.Lock()
		m.Number = s.out.Last(m.Token)
		s.mu.Unlock()
		e.Message = m
	case core.Report:
		if e.To == c.self {
			c.binding.toCoordinator(c.self, m)
			return
		}
	}
	if e.To == c.self {
		contain.Send(ctx.ActorSystem(), ctx.Self(), &heard{e.Message})
		return
	}
	manifest, m := encode(e.Message)
	c.binding.tell(c.view, e.To, manifest, m)
}

// sendData sends a delivery to another member.
func (c *control) sendData(ctx actor.Context, d core.Data) {
	s, body, sent := c.binding.shards[d.Shard], d.Body.Value.(*outgoing), false
	err := pack(d.Body.ID, body.value, c.view.Self.Address, func(m *wireMessage) {
		m.delivery, m.again, m.origin = d.Delivery, d.Again, body.delivery.origin
		s.mu.Lock()
		defer s.mu.Unlock()
		sent = s.out.Token() == d.Token && s.forward(m, nil)
	})
	switch {
	case err != nil:
		c.unsendable(ctx, d, err)
	case !sent:
		c.step(ctx, core.NoCredit{Shard: d.Shard, Token: d.Token, Number: d.Delivery,
			Again: d.Again})
	}
}

// tell sends a message to the control actor of another member.
func (l *binding) tell(v *membership.View, to core.Member, manifest wire.Manifest,
	m proto.Message) {
	payload, err := proto.Marshal(m)
	if err != nil || len(payload) > wire.MaxPayload {
		l.log.Error("message not sent", slog.Any("manifest", manifest),
			slog.Int("bytes", len(payload)), slog.Any("error", err))
		return
	}
	l.seal(v, to, l.cfg.controlName(), manifest, payload)
}

// seal sends a payload to an actor or process of another member.
func (l *binding) seal(v *membership.View, to core.Member, name string, manifest wire.Manifest,
	payload []byte) {
	h := wire.Header{Cluster: v.Cluster, Member: v.Self.ID, From: v.Self.Incarnation,
		To: to.Incarnation}
	contain.Send(l.system, actor.NewPID(to.Address, name), wire.Seal(h, manifest, payload))
}

// open returns the sender and the content of a message. It accepts messages only from members of
// the view, in the incarnation that the view lists, and only if they are addressed to this
// incarnation.
func (c *control) open(env *envelope) (from membership.Member, manifest wire.Manifest,
	payload []byte, ok bool) {
	if c.view == nil || c.view.Removed {
		return from, 0, nil, false
	}
	h, manifest, payload, err := wire.Open(env, c.view.Cluster)
	if err != nil {
		c.binding.ignore(manifest, err)
		return from, 0, nil, false
	}
	m, listed := c.view.Find(h.Member)
	ok = listed && m.Incarnation == h.From && (h.To == 0 || h.To == c.view.Self.Incarnation)
	return m, manifest, payload, ok
}

func (c *control) onEnvelope(ctx actor.Context, env *envelope) {
	from, manifest, payload, ok := c.open(env)
	switch {
	case !ok:
		return
	case manifest == wire.ShardingHello:
		c.onHello(ctx, from, payload)
		return
	case c.peers.differs(from):
		return // it shares no shards with this member
	case manifest == wire.ShardingAskStats, manifest == wire.ShardingStats:
		c.onStats(from, manifest, payload)
		return
	}
	c.stir = true
	m, err := decode(manifest, payload)
	if err != nil {
		c.binding.ignore(manifest, err)
		return
	}
	c.hear(ctx, member(from), m)
}

// hear processes a message of the protocol. Reports go to the coordinator, and those of regions
// that have ended also to the region, for the next coordinator on this member.
func (c *control) hear(ctx actor.Context, from core.Member, m core.Message) {
	taken, ok := m.(core.Taken)
	if f := c.flows[from]; ok && (f == nil || !f.Confirm(taken.Bytes)) {
		return
	}
	r, reports := m.(core.Report)
	if !reports || r.Ended() {
		c.step(ctx, core.Received{From: from, Message: m})
	}
	if reports {
		c.binding.toCoordinator(from, r)
	}
}

func (c *control) hello(to membership.Member, answer bool) {
	h := &pb.ShardingHello{Settings: c.binding.cfg.settings(), Answer: answer}
	if c.binding.session != nil {
		h.Session = c.binding.session.ID()
	}
	c.binding.tell(c.view, member(to), wire.ShardingHello, h)
}

// maxSettings bounds the settings of a hello, in bytes.
const maxSettings = 1024

func (c *control) onHello(ctx actor.Context, from membership.Member, payload []byte) {
	var h pb.ShardingHello
	err := proto.Unmarshal(payload, &h)
	if err != nil || len(h.Settings) > maxSettings {
		c.binding.ignore(wire.ShardingHello, err)
		return
	}
	if !c.peers.heard(from) {
		c.meet(ctx, from, h.Settings, h.Session)
	}
	if h.Answer {
		c.hello(from, false)
	}
}
