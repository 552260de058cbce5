package singleton

import (
	"maps"
	"slices"
	"time"

	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// clientFor is how long a proxy that does not ask any more counts as one that uses this host.
const clientFor = 3 * askInterval

// drainFor bounds the wait, at the end of a hand-over, for proxies that have not asked for the next host.
const drainFor = askInterval

// client is a proxy that has asked here.
type client struct {
	member core.Member
	round  uint64
	hops   uint32
	open   bool // not answered with a host or passed on
	heard  time.Time
	expect time.Time // until when its next search is waited for; zero: not
}

// clients are those that asked lately, by member id. There are never more than members.
type clients map[string]*client

// hear notes a question. One of an earlier search than known only proves life.
func (cs clients) hear(from core.Member, q *pb.SingletonIdentify, now time.Time) *client {
	for id, c := range cs {
		if now.Sub(c.heard) > clientFor {
			delete(cs, id)
		}
	}
	c := cs[from.ID]
	if c == nil || c.member.Incarnation != from.Incarnation {
		c = &client{}
		cs[from.ID] = c
	}
	if q.Round > c.round {
		c.expect = time.Time{}
	}
	c.member, c.round, c.hops, c.open, c.heard = from, max(c.round, q.Round), q.Hops, true, now
	return c
}

// each calls f for each client, in the order of their ids.
func (cs clients) each(f func(*client)) {
	for _, id := range slices.Sorted(maps.Keys(cs)) {
		f(cs[id])
	}
}

// expectAll waits, for a while, for the next search of each.
func (cs clients) expectAll(now time.Time) {
	for _, c := range cs {
		if now.Sub(c.heard) <= clientFor {
			c.expect = now.Add(drainFor)
		}
	}
}

// expecting tells whether any search is still waited for.
func (cs clients) expecting(now time.Time) bool {
	for _, c := range cs {
		if now.Before(c.expect) {
			return true
		}
	}
	return false
}

// due is when the last wait ends; zero: there is none.
func (cs clients) due() (at time.Time) {
	for _, c := range cs {
		if c.expect.After(at) {
			at = c.expect
		}
	}
	return at
}
