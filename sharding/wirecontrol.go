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
		c.sendData(ctx, e.To, m)
		return
	case core.Confirm:
		c.life.link(e.To).confirm(m)
		return
	case core.Sent: // what it counts goes first
		c.life.link(e.To).sent(m.Bytes)
		return
	case core.Report:
		if e.To == c.self {
			c.life.toCoordinator(c.self, m)
			return
		}
	}
	if e.To == c.self {
		contain.Send(ctx.ActorSystem(), ctx.Self(), &heard{e.Message})
		return
	}
	manifest, m := encode(e.Message)
	c.life.post(c.view, e.To, manifest, m)
}

// sendData sends a user message that could not be sent in the goroutine of its sender. A message
// that cannot be encoded is rejected, and only its number is sent.
func (c *control) sendData(ctx actor.Context, to core.Member, d core.Data) {
	numbers := func(p *packet) { p.shard, p.token, p.number = d.Shard, d.Token, d.Number }
	body := d.Body.Value.(*parcel)
	link := c.life.link(to)
	err := pack(d.Body.ID, body.value, c.view.Self.Address, func(p *packet) {
		numbers(p)
		if d.Delivery != 0 {
			p.delivery, p.again, p.origin = d.Delivery, d.Again, body.promise.origin
		}
		link.parcel(p, 0)
		c.life.calls.Sent(body.call, core.Tenure{Shard: d.Shard, Token: d.Token})
	})
	if err != nil {
		p := &packet{}
		numbers(p)
		link.parcel(p, 0)
	}
	c.region.Line(d.Shard).Sent()
	if d.Delivery == 0 {
		c.life.arrived(d.Shard)
	}
	switch {
	case err == nil:
	case d.Delivery != 0:
		c.unsendable(ctx, d, err)
	default:
		c.life.refuse(d.Body.ID, d.Body.Value, err)
	}
}

// post sends a message to the control actor of another member.
func (l *life) post(v *membership.View, to core.Member, manifest wire.Manifest, m proto.Message) {
	payload, err := proto.Marshal(m)
	if err != nil || len(payload) > wire.MaxPayload {
		l.log.Error("message not sent", slog.Any("manifest", manifest),
			slog.Int("bytes", len(payload)), slog.Any("error", err))
		return
	}
	l.seal(v, to, l.cfg.controlName(), manifest, payload)
}

// seal sends a payload to an actor or process of another member.
func (l *life) seal(v *membership.View, to core.Member, name string, manifest wire.Manifest,
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
		c.life.ignore(manifest, err)
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
		c.life.ignore(manifest, err)
		return
	}
	c.hear(ctx, member(from), m)
}

// hear processes a message of the protocol. Reports go to the coordinator, and those of regions
// that have ended also to the region, for the next coordinator on this member.
func (c *control) hear(ctx actor.Context, from core.Member, m core.Message) {
	r, ok := m.(core.Report)
	if !ok || r.Ended() {
		c.step(ctx, core.Received{From: from, Message: m})
	}
	if ok {
		c.life.toCoordinator(from, r)
	}
}

func (c *control) hello(to membership.Member, answer bool) {
	h := &pb.ShardingHello{Settings: c.life.cfg.settings(), Answer: answer}
	if c.life.session != nil {
		h.Session = c.life.session.ID()
	}
	c.life.post(c.view, member(to), wire.ShardingHello, h)
}

// maxSettings bounds the settings of a hello, in bytes.
const maxSettings = 1024

func (c *control) onHello(ctx actor.Context, from membership.Member, payload []byte) {
	var h pb.ShardingHello
	err := proto.Unmarshal(payload, &h)
	if err != nil || len(h.Settings) > maxSettings {
		c.life.ignore(wire.ShardingHello, err)
		return
	}
	if !c.peers.heard(from) {
		c.meet(ctx, from, h.Settings, h.Session)
	}
	if h.Answer {
		c.hello(from, false)
	}
}
