package distributeddata

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/expiry"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/timer"
)

// expirer deletes entries that have not been used for their time to live, when it is this member's
// turn to do so. It also stamps entries that were read here or that have no stamp yet [R31]. It is
// part of the replica's actor.
type expirer struct {
	a     *replica
	table *expiry.Table
	timer *timer.Timer
	at    time.Time // when the timer fires
	began time.Time // when the replica started
	last  time.Time // when entries were last deleted
	uses  time.Time // when to stamp the entries that were read; zero: there are none
	going bool      // a goOn message is in the mailbox
}

// goOn continues with the entries that are due, so that a long list does not delay other messages.
type goOn struct{}

// someEntries is how many entries are stamped or deleted before other messages are handled.
const someEntries = 256

// longest is the longest sleep of the expirer. It is bounded because the wall clock may be set.
const longest = time.Minute

// turn is how long a member has to delete an entry before it is the turn of the next member.
func (c *Config) turn() time.Duration { return 2*c.ClockSkew + 4*c.HeartbeatInterval }

// start fills the table with the existing entries.
func (e *expirer) start() {
	l := e.a.l
	if e.timer == nil {
		e.timer = timer.New(l.system, e.a.ctx.Self())
		e.began = e.timer.Now()
	}
	e.table = expiry.New(expiry.Config{Skew: l.ttls.skew, Turn: l.cfg.turn().Milliseconds()})
	e.view()
	for h := range l.published.Load().domainViews() {
		for key, held := range h.keys.All() {
			e.put(key, held.Store)
		}
	}
	e.gather()
}

func (e *expirer) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// view passes the members to the table.
func (e *expirer) view() {
	v := e.a.view
	if v == nil || e.table == nil {
		return
	}
	others := e.a.otherMembers()
	ids := make([]string, len(others))
	for i, m := range others {
		ids[i] = m.ID
	}
	e.table.View(v.Self.ID, ids)
	e.arm()
}

// changed updates the table after entries have changed.
func (e *expirer) changed(keys []string) {
	for _, key := range keys {
		held, _ := e.a.l.published.Load().of(key).keys.Get(key)
		e.put(key, held.Store)
	}
	e.arm()
}

// put updates the table for one entry.
func (e *expirer) put(key string, s causal.Store) {
	_, u := lastUse(s)
	ttl := e.a.l.ttls.of(key, u)
	if ttl == 0 || s.Empty() || permanentlyDeleted(s) {
		e.table.Drop(key)
		return
	}
	e.table.Put(e.a.l.ttls.now(), key, u.At, ttl)
}

// gather schedules the stamping of entries that were read.
func (e *expirer) gather() {
	if e.uses.IsZero() {
		e.uses = e.timer.Now().Add(gatherUses)
	}
	e.arm()
}

// arm sets the timer, unless it fires early enough already.
func (e *expirer) arm() {
	if e.a.stopped {
		return
	}
	at := e.timer.Now().Add(longest)
	if next, ok := e.table.Next(); ok {
		if due := later(time.UnixMilli(next), e.last.Add(e.a.l.cfg.HeartbeatInterval)); due.Before(
			at) {
			at = due
		}
	} else if e.uses.IsZero() {
		return
	}
	if !e.uses.IsZero() && e.uses.Before(at) {
		at = e.uses
	}
	if !e.timer.Armed() || at.Before(e.at) {
		e.at = at
		e.timer.SetAt(at, nil)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// wake handles the entries that are due. If there are many, it continues after the messages in the
// mailbox.
func (e *expirer) wake() {
	if e.a.stopped {
		return
	}
	now := e.timer.Now()
	more := false
	if !e.uses.IsZero() && !now.Before(e.uses) {
		more = e.stampUsed()
	}
	if at, ok := e.table.Next(); ok && at <= now.UnixMilli() &&
		(e.going || !now.Before(e.last.Add(e.a.l.cfg.HeartbeatInterval))) {
		more = e.expire(now) || more
	}
	if e.going = more; more {
		e.a.ctx.Send(e.a.ctx.Self(), goOn{})
		return
	}
	e.arm()
}

// stampUsed stamps entries that were read, and reports whether more remain.
func (e *expirer) stampUsed() (more bool) {
	keys, more := e.a.l.r.uses.take(someEntries)
	if !more {
		e.uses = time.Time{}
	}
	for d, keys := range e.byDomain(keys) {
		e.stamp(d, keys)
	}
	return more
}

// expire deletes the entries that it is this member's turn to delete, and reports whether more may
// remain.
func (e *expirer) expire(now time.Time) (more bool) {
	e.last = now
	may := map[*domain]bool{}
	for _, d := range e.a.domains {
		if e.sees(d, now) {
			may[d] = true
		}
	}
	if len(may) == 0 {
		return false
	}
	due := e.table.Due(now.UnixMilli(), someEntries, nil)
	for _, d := range e.a.domains {
		if !may[d] {
			continue
		}
		var old []expiry.Due
		var bare []string
		for _, x := range due {
			switch {
			case e.a.of(x.Key) != d:
			case x.Use == 0:
				bare = append(bare, x.Key)
			default:
				old = append(old, x)
			}
		}
		e.stamp(d, bare)
		e.remove(d, old)
	}
	return len(due) == someEntries
}

// sees reports whether this member may delete entries of a domain. It must have been refilled and
// must see more than half of the counted members, so that it knows of uses elsewhere. Without
// majorities it waits for one turn instead.
func (e *expirer) sees(d *domain, now time.Time) bool {
	if d.durable && d.loading() {
		return false
	}
	if e.a.l.cfg.MinMembers == 0 {
		return now.Sub(e.began) >= e.a.l.cfg.turn()
	}
	quorum := d.core.QuorumStatus()
	return d.core.Ready() && quorum != nil && 2*len(quorum.Missing()) < quorum.Counted
}

// byDomain groups keys by their domain.
func (e *expirer) byDomain(keys []string) map[*domain][]string {
	parts := map[*domain][]string{}
	for _, key := range keys {
		d := e.a.of(key)
		parts[d] = append(parts[d], key)
	}
	return parts
}

// stamp renews the stamps of entries of a domain, where they are due.
func (e *expirer) stamp(d *domain, keys []string) {
	if len(keys) == 0 || d.durable && d.loading() {
		return
	}
	s, n := e.a.l.ttls.stamper(0), 0
	d.step(core.Update{Modify: func(t *history.Txn) error {
		for _, key := range keys {
			was := t.Get(key)
			before := content(was)
			is := s.stamped(t, key, was, before, before)
			if !is.Same(was) && !before.Empty() {
				t.Put(key, is)
				n++
			}
		}
		return nil
	}})
	e.a.l.r.touches.Add(uint64(n))
}

// remove deletes entries of a domain, except those that have been used in the meantime.
func (e *expirer) remove(d *domain, due []expiry.Due) {
	if len(due) == 0 {
		return
	}
	n := 0
	d.step(core.Update{Modify: func(t *history.Txn) error {
		for _, x := range due {
			s := t.Get(x.Key)
			if _, u := lastUse(s); u.At != x.Use || e.a.l.ttls.of(x.Key, u) != x.TTL {
				continue
			}
			if !content(s).Empty() {
				n++
			}
			clearEntry(t, x.Key, false)
		}
		return nil
	}})
	e.a.l.r.expired.Add(uint64(n))
}
