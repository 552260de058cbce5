package sharding

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// envelope wraps all messages of the protocol.
type envelope = pb.Envelope

// tell sends a message of the protocol.
func (c *control) tell(ctx actor.Context, e core.Tell) {
	if d, ok := e.Message.(core.Data); ok {
		c.sendData(ctx, e.To, d)
		return
	}
	if m, ok := e.Message.(core.Confirm); ok {
		if full := c.collector(ctx, e.To).confirm(m); full != nil {
			c.life.post(c.view, e.To, wire.ShardingData, full)
		}
		return
	}
	if e.To == c.self {
		if r, ok := e.Message.(core.Report); ok {
			c.life.toCoordinator(c.self, r)
			return
		}
		ctx.Send(ctx.Self(), &heard{e.Message})
		return
	}
	if _, ok := e.Message.(core.Sent); ok {
		c.dispatchTo(e.To) // what it counts goes first
	}
	manifest, m := encode(e.Message)
	c.life.post(c.view, e.To, manifest, m)
}

// sendData sends a user message, together with others in the mailbox for the same member. A message
// that cannot be sent is rejected, and only its number is sent.
func (c *control) sendData(ctx actor.Context, to core.Member, d core.Data) {
	if d.Delivery == 0 {
		c.life.arrived(d.Shard)
	}
	p, err := pack(d, c.view.Self.Address)
	if full := c.collector(ctx, to).collect(p); full != nil {
		c.life.post(c.view, to, wire.ShardingData, full)
	}
	switch {
	case err == nil:
	case d.Delivery != 0:
		c.unsendable(ctx, d, err)
	default:
		c.life.refuse(d.Body.ID, d.Body.Value, err)
	}
}

// collector returns what collects the messages for a member until the mailbox is empty.
func (c *control) collector(ctx actor.Context, to core.Member) *outgoing {
	i := slices.IndexFunc(c.outgoing, func(o *outgoing) bool { return o.to == to })
	if i < 0 {
		i = len(c.outgoing)
		c.outgoing = append(c.outgoing, &outgoing{to: to})
		if i == 0 {
			ctx.Send(ctx.Self(), &dispatch{}) // after the messages in the mailbox
		}
	}
	return c.outgoing[i]
}

// dispatch posts the collected parcels.
func (c *control) dispatch() {
	for _, o := range c.outgoing {
		if !o.empty() {
			c.life.post(c.view, o.to, wire.ShardingData, o.take())
		}
	}
	c.outgoing = nil
}

// dispatchTo posts the collected parcels for one member.
func (c *control) dispatchTo(to core.Member) {
	for _, o := range c.outgoing {
		if o.to == to && !o.empty() {
			c.life.post(c.view, to, wire.ShardingData, o.take())
		}
	}
}

// post sends a message to the control actor of another member.
func (l *life) post(v *membership.View, to core.Member, manifest wire.Manifest, m proto.Message) {
	payload, err := proto.Marshal(m)
	if err != nil || len(payload) > wire.MaxPayload {
		l.log.Error("message not sent", slog.Any("manifest", manifest), slog.Int("bytes", len(payload)), slog.Any("error", err))
		return
	}
	h := wire.Header{Cluster: v.Cluster, Member: v.Self.ID, From: v.Self.Incarnation, To: to.Incarnation}
	l.system.Root.Send(actor.NewPID(to.Address, l.cfg.controlName()), wire.Seal(h, manifest, payload))
}

// open returns the sender and the content of a message. It accepts messages only from members of
// the view, in the incarnation that the view lists, and only if they are addressed to this
// incarnation.
func (c *control) open(env *envelope) (from membership.Member, manifest wire.Manifest, payload []byte, ok bool) {
	if c.view == nil || c.view.Removed {
		return from, 0, nil, false
	}
	h, manifest, payload, err := wire.Open(env, c.view.Cluster)
	if err != nil {
		c.ignore(manifest, err)
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
	case manifest == wire.ShardingData:
		c.onData(ctx, member(from), payload)
		return
	case manifest == wire.ShardingAskStats, manifest == wire.ShardingStats:
		c.onStats(from, manifest, payload)
		return
	}
	c.stir = true
	m, err := decode(manifest, payload)
	if err != nil {
		c.ignore(manifest, err)
		return
	}
	c.hear(ctx, member(from), m)
}

// hear processes a message of the protocol. Reports go to the coordinator.
func (c *control) hear(ctx actor.Context, from core.Member, m core.Message) {
	if r, ok := m.(core.Report); ok {
		c.life.toCoordinator(from, r)
		return
	}
	c.step(ctx, core.Received{From: from, Message: m})
}

func (c *control) onData(ctx actor.Context, from core.Member, payload []byte) {
	var in pb.ShardingData
	if err := proto.Unmarshal(payload, &in); err != nil {
		c.ignore(wire.ShardingData, err)
		return
	}
	for _, p := range in.Parcels {
		c.onParcel(ctx, from, p)
	}
	for _, m := range in.Confirmed {
		if err := fits(m.GetShard(), 0); err != nil {
			c.ignore(wire.ShardingData, err)
			continue
		}
		for _, n := range m.GetNumbers() {
			c.step(ctx, core.Received{From: from, Message: core.Confirm{Shard: int(m.GetShard()), Number: n}})
		}
	}
}

func (c *control) onParcel(ctx actor.Context, from core.Member, p *pb.ShardingParcel) {
	d, sender, err := unpack(p)
	if err != nil && !errors.Is(err, errNoMessage) {
		c.ignore(wire.ShardingData, err)
		if sender != nil {
			ctx.Send(sender, &actor.DeadLetterResponse{})
		}
	}
	if d.Number != 0 {
		c.step(ctx, core.Received{From: from, Message: d})
	}
}

// ignore counts a protocol message that cannot be used.
func (c *control) ignore(manifest wire.Manifest, err error) {
	if n := c.life.counts.ignored.Add(1); n&(n-1) == 0 { // the 1st, 2nd, 4th, 8th, …: bounds the log
		c.log.Warn("message ignored", slog.Any("manifest", manifest), slog.Any("error", err), slog.Uint64("ignored", n))
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
		c.ignore(wire.ShardingHello, err)
		return
	}
	if !c.peers.heard(from) {
		c.meet(ctx, from, h.Settings, h.Session)
	}
	if h.Answer {
		c.hello(from, false)
	}
}
