package sharding

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/membership"
)

// peers holds the members that have introduced themselves, by id.
type peers struct {
	known map[string]*peer
	past  []past
}

// past is the observation of the session of a member that is gone. Its leases cannot be acquired
// before its session has ended, and observers detect that first.
type past struct {
	stop  func()
	until time.Time
}

type peer struct {
	incarnation uint64
	settings    string
	differs     bool   // its settings differ from ours
	stop        func() // ends the observation of its session
}

// of returns the peer of a member, or nil if the member has not introduced itself.
func (p *peers) of(m membership.Member) *peer {
	if q := p.known[m.ID]; q != nil && q.incarnation == m.Incarnation {
		return q
	}
	return nil
}

func (p *peers) heard(m membership.Member) bool { return p.of(m) != nil }

func (p *peers) differs(m membership.Member) bool {
	q := p.of(m)
	return q != nil && q.differs
}

// keep removes the peers that are not in the view.
func (p *peers) keep(v *membership.View, until time.Time) {
	for id, q := range p.known {
		if m, ok := v.Find(id); !ok || m.Incarnation != q.incarnation {
			delete(p.known, id)
			p.past = append(p.past, past{q.stop, until})
		}
	}
}

// pass stops observations that have lasted until their deadline.
func (p *peers) pass(now time.Time) {
	p.past = slices.DeleteFunc(p.past, func(o past) bool {
		if now.Before(o.until) {
			return false
		}
		o.stop()
		return true
	})
}

// drop stops all observations.
func (p *peers) drop() {
	for id, q := range p.known {
		delete(p.known, id)
		q.stop()
	}
	for _, o := range p.past {
		o.stop()
	}
	p.past = nil
}

// linger returns how long the session of a member that is gone is observed: longer than its TTL.
func (l *binding) linger() time.Duration {
	if l.session == nil {
		return 0
	}
	return max(5*time.Minute, 12*leases.Held.Drain(l.session))
}

// introduce says hello to each member that may take part and has not been heard.
func (c *control) introduce(_ actor.Context) {
	if c.view == nil || c.view.Removed {
		return
	}
	for _, m := range c.view.Members {
		if m.ID != c.view.Self.ID && m.Incarnation != 0 && m.HasRole(c.binding.cfg.Role) &&
			!c.peers.heard(m) {
			c.hello(m, true)
		}
	}
}

// meet records a member that has introduced itself for the first time.
func (c *control) meet(ctx actor.Context, from membership.Member, settings, session string) {
	q := &peer{incarnation: from.Incarnation, settings: settings, stop: func() {}}
	if own := c.binding.cfg.settings(); settings != own {
		q.differs = true
		c.log.Error("a member has different settings of the type: its messages are ignored",
			slog.String("member", from.Address), slog.String("there", settings),
			slog.String("here", own))
	}
	if s := c.binding.session; s != nil && session != "" {
		if stop, err := s.Observe(session); err == nil {
			q.stop = stop
		}
	}
	if c.peers.known == nil {
		c.peers.known = map[string]*peer{}
	}
	c.peers.known[from.ID] = q
	c.look(ctx)
}
