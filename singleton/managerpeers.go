package singleton

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/stash"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// tellClients sends the place of the instance to the proxies that wait for it.
func (m *manager) tellClients(ctx actor.Context) {
	m.clients.each(func(c *client) {
		if c.open { // the others have asked elsewhere since
			m.tellHost(ctx, c)
		}
	})
}

func (m *manager) tellHost(ctx actor.Context, c *client) {
	c.open, c.told = false, true
	m.send(ctx, m.self(), c.member, m.binding.cfg.proxyName(), wire.SingletonHost,
		&pb.SingletonHost{Round: c.round, Token: m.machine.Token()})
}

// tellLeaving notifies the managers, which elect another host, and the proxies, which look for it.
func (m *manager) tellLeaving(ctx actor.Context) {
	if m.view == nil {
		return
	}
	m.tellManagers(ctx, wire.SingletonLeaving, &pb.SingletonLeaving{})
	for _, to := range m.view.Members {
		m.send(ctx, m.self(), member(to), m.binding.cfg.proxyName(), wire.SingletonLeaving,
			&pb.SingletonLeaving{})
	}
}

// tellManagers sends a message to every other member that may host.
func (m *manager) tellManagers(ctx actor.Context, manifest wire.Manifest, msg proto.Message) {
	for _, to := range m.view.Members {
		if to.ID != m.view.Self.ID && to.HasRole(m.binding.cfg.Role) {
			m.send(ctx, m.self(), member(to), m.binding.cfg.managerName(), manifest, msg)
		}
	}
}

// announce announces to the other members, and logs each announcement once.
func (m *manager) announce(ctx actor.Context, e core.Announce) {
	if e.Seq != m.told {
		m.told = e.Seq
		switch {
		case e.Failing:
			m.log.Error("singleton instances fail here, and no other member may host",
				slog.Any("reason", m.reason))
		case e.Claims:
			m.log.Info("member claims the singleton, since it is the preferred host")
		case e.For > 0:
			// The cause is logged where it is noticed.
			m.log.Info("member declines to host the singleton",
				slog.Bool("failing", m.machine.Failing()),
				slog.Any("gate", gate.Of(ctx.ActorSystem()).State().Why),
				slog.Any("store", m.lease.failure))
		case m.claimed:
			m.log.Info("member no longer claims the singleton")
		default:
			m.log.Info("member no longer declines to host the singleton")
		}
		m.claimed = e.Claims
	}
	m.binding.news.tell(&say{m.binding, &pb.SingletonWord{
		Name: m.binding.cfg.Name, Sequence: e.Seq, Failing: e.Failing, Claims: e.Claims,
		Abstains: e.For > 0 && !e.Failing && !e.Claims, Token: e.Token,
		Settings: m.binding.cfg.settings(),
	}})
}

// compare records whether an older member has other settings. This member does not host as long as
// one has: each of the two might have an instance.
func (m *manager) compare(ctx actor.Context, s *said) {
	if m.view == nil {
		return
	}
	older := func(id string) bool {
		for _, o := range m.view.ByAge("") {
			if o.ID == id || o.ID == m.view.Self.ID {
				return o.ID == id
			}
		}
		return false
	}
	switch {
	case s == nil:
	case s.differs && older(s.from.ID):
		m.differs = s.from.ID
	case m.differs == s.from.ID:
		m.differs = ""
	}
	if m.differs != "" && !older(m.differs) {
		m.differs = ""
	}
	m.admit(ctx)
}

func (m *manager) forward(ctx actor.Context, e stash.Entry) {
	to, ok := m.machine.Next()
	hop, fresh := hopped(e)
	switch {
	case !ok || !fresh:
		m.refuse(ctx, e, ErrUndelivered)
	case !portable(e.Message):
		m.refuse(ctx, e, errNotProtobuf)
	default:
		m.binding.counts.passedOn.Add(1)
		next := actor.NewPID(to.Address, m.binding.cfg.managerName())
		contain.Send(ctx.ActorSystem(), next, hop.Envelope())
	}
}

// passOn passes on the messages that were kept for an instance that will not be here, and then the
// questions of the proxies that have sent them. So a manager that answers a question has the
// messages.
func (m *manager) passOn(ctx actor.Context) {
	for e := range m.kept.Drain() {
		m.forward(ctx, e)
	}
	m.clients.each(func(c *client) { m.askNext(ctx, c) })
}

// askNext passes a question on to the next host.
func (m *manager) askNext(ctx actor.Context, c *client) {
	if to, ok := m.machine.Next(); ok && c.open && c.hops < maxHops {
		c.open = false
		m.send(ctx, c.member, to, m.binding.cfg.managerName(), wire.SingletonIdentify,
			&pb.SingletonIdentify{Round: c.round, Hops: c.hops + 1})
	}
}

func (m *manager) onEnvelope(ctx actor.Context, env *pb.Envelope) {
	from, manifest, payload, ok := m.open(env)
	if !ok {
		return
	}
	switch manifest {
	case wire.SingletonIdentify:
		var q pb.SingletonIdentify
		if m.decode(payload, &q) {
			m.onIdentify(ctx, from, &q)
		}
	case wire.SingletonFree:
		m.step(ctx, core.Free{})
	case wire.SingletonLeaving:
		m.step(ctx, core.Leaving{Member: from})
	case wire.SingletonState:
		var s pb.SingletonState
		if m.decode(payload, &s) {
			m.onState(ctx, from, &s)
		}
	case wire.SingletonStateTaken:
		var t pb.SingletonStateTaken
		if m.decode(payload, &t) {
			m.onStateTaken(&t)
		}
	default:
		m.ignore(slog.Any("unknown", manifest))
	}
}

// onIdentify answers now, or when the instance runs, or passes the question on.
func (m *manager) onIdentify(ctx actor.Context, from core.Member, q *pb.SingletonIdentify) {
	c := m.clients.hear(from, q)
	switch {
	case m.machine.State() == core.Active:
		m.tellHost(ctx, c)
	case !m.machine.Keeps():
		m.askNext(ctx, c)
	}
	m.finish(ctx)
}
