package singleton

import (
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/membership"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// drainFor bounds the wait, at the end of a hand-over, for proxies that have not yet asked for the
// next host.
const drainFor = askInterval

// client is a proxy that has asked this manager.
type client struct {
	member core.Member
	round  uint64
	hops   uint32
	open   bool      // its question was neither answered nor passed on
	told   bool      // in this round, that the instance is here: it sends its messages here
	expect time.Time // deadline of the wait for its next search; zero: no wait
}

// clients are the proxies that have asked, by member id. There are never more than members.
type clients map[string]*client

// hear records a question. A question of an earlier search only shows that the proxy is alive.
func (cs clients) hear(from core.Member, q *pb.SingletonIdentify) *client {
	c := cs[from.ID]
	if c == nil || c.member.Incarnation != from.Incarnation {
		c = &client{}
		cs[from.ID] = c
	}
	if q.Round > c.round {
		c.told, c.expect = false, time.Time{}
	}
	c.member, c.round, c.hops, c.open = from, max(c.round, q.Round), q.Hops, true
	return c
}

// keep removes the clients that are not in the view.
func (cs clients) keep(v *membership.View) {
	maps.DeleteFunc(cs, func(id string, c *client) bool {
		m, ok := v.Find(id)
		return !ok || m.Incarnation != c.member.Incarnation
	})
}

// each calls f for each client, in the order of their ids.
func (cs clients) each(f func(*client)) {
	for _, id := range slices.Sorted(maps.Keys(cs)) {
		f(cs[id])
	}
}

// expectAll starts to wait, for drainFor, for the next search of each client that sends its
// messages here.
func (cs clients) expectAll(now time.Time) {
	for _, c := range cs {
		if c.told {
			c.expect = now.Add(drainFor)
		}
	}
}

// expecting reports whether the manager still waits for a search.
func (cs clients) expecting(now time.Time) bool {
	for _, c := range cs {
		if now.Before(c.expect) {
			return true
		}
	}
	return false
}

// due returns when the last wait ends; zero if there is none.
func (cs clients) due() (at time.Time) {
	for _, c := range cs {
		if c.expect.After(at) {
			at = c.expect
		}
	}
	return at
}
