package sharding

import (
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/membership"
)

// peers are the members that have introduced themselves, by id.
type peers struct {
	known map[string]*peer
	past  []past
}

// past is the observation of the session of a member that has gone. The leases that it held cannot be acquired before its
// session is over, which an observer knows first.
type past struct {
	stop  func()
	until time.Time
}

type peer struct {
	incarnation uint64
	differs     bool   // its settings do
	stop        func() // ends the observation of its session
}

// of returns the peer that a member is; nil if it has not introduced itself.
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

// keep forgets those that are not in the view.
func (p *peers) keep(v *membership.View, until time.Time) {
	for id, q := range p.known {
		if m, ok := v.Find(id); !ok || m.Incarnation != q.incarnation {
			delete(p.known, id)
			p.past = append(p.past, past{q.stop, until})
		}
	}
}

// pass ends observations that have lasted long enough.
func (p *peers) pass(now time.Time) {
	p.past = slices.DeleteFunc(p.past, func(o past) bool {
		if now.Before(o.until) {
			return false
		}
		o.stop()
		return true
	})
}

// drop ends all observations.
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

// linger is how long the session of a member that has gone is observed: longer than its TTL.
func (l *life) linger() time.Duration {
	if l.session == nil {
		return 0
	}
	return max(5*time.Minute, 12*l.session.Drain())
}

// introduce says hello to each member that may take part and has not been heard.
func (c *control) introduce(_ actor.Context) {
	if c.view == nil || c.view.Removed {
		return
	}
	for _, m := range c.view.Members {
		if m.ID != c.view.Self.ID && m.Incarnation != 0 && m.HasRole(c.life.cfg.Role) && !c.peers.heard(m) {
			c.hello(m, true)
		}
	}
}

// meet takes in a member that has not been heard before.
func (c *control) meet(ctx actor.Context, from membership.Member, settings, session string) {
	q := &peer{incarnation: from.Incarnation, stop: func() {}}
	if own := c.life.cfg.settings(); settings != own {
		q.differs = true
		c.log.Error("a member has other settings of the type, and is not heard", slog.String("member", from.ID),
			slog.String("there", settings), slog.String("here", own))
	}
	if s := c.life.session; s != nil && session != "" {
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
