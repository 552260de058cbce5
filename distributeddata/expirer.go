package distributeddata

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/expiry"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/timer"
)

// expirer deletes entries that have not been used for their time to live, if it is this member's turn, and stamps those that
// have been read here, or have no stamp yet [R24]. It is a part of the replica's actor.
type expirer struct {
	a     *replica
	table *expiry.Table
	timer *timer.Timer
	at    time.Time // that the timer is armed for
	began time.Time // of the replica
	last  time.Time // that entries were deleted
	uses  time.Time // when those that were read are to be stamped; zero: none was
	going bool      // a goOn is on its way
}

// goOn goes on with what is due: much of it holds nobody up.
type goOn struct{}

// someEntries is how many entries are stamped or deleted before the next message is handled.
const someEntries = 256

// longest is how long the expirer sleeps, since the wall clock may be set.
const longest = time.Minute

// turn is how long a member has for deleting an entry before the next one does.
func (c *Config) turn() time.Duration { return 2*c.ClockSkew + 4*c.HeartbeatInterval }

// start begins with what is there.
func (e *expirer) start() {
	l := e.a.l
	if e.timer == nil {
		e.timer = timer.New(l.system, e.a.ctx.Self())
		e.began = e.timer.Now()
	}
	e.table = expiry.New(expiry.Config{Skew: l.ttls.skew, Turn: l.cfg.turn().Milliseconds()})
	e.view()
	for h := range l.published.Load().halves() {
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

// view tells the table of the members.
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

// changed notes what became of entries.
func (e *expirer) changed(keys []string) {
	for _, key := range keys {
		held, _ := e.a.l.published.Load().of(key).keys.Get(key)
		e.put(key, held.Store)
	}
	e.arm()
}

// put notes what an entry holds.
func (e *expirer) put(key string, s causal.Store) {
	_, u := lastUse(s)
	ttl := e.a.l.ttls.of(key, u)
	if ttl == 0 || s.Empty() || buried(s) {
		e.table.Drop(key)
		return
	}
	e.table.Put(e.a.l.ttls.now(), key, u.At, ttl)
}

// gather sees to it that what was read is stamped soon.
func (e *expirer) gather() {
	if e.uses.IsZero() {
		e.uses = e.timer.Now().Add(gatherUses)
	}
	e.arm()
}

// arm sets the timer, unless it fires soon enough.
func (e *expirer) arm() {
	if e.a.stopped {
		return
	}
	at := e.timer.Now().Add(longest)
	if next, ok := e.table.Next(); ok {
		if due := later(time.UnixMilli(next), e.last.Add(e.a.l.cfg.HeartbeatInterval)); due.Before(at) {
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

// wake does what is due, and goes on with the rest after the messages that wait.
func (e *expirer) wake() {
	if e.a.stopped {
		return
	}
	now := e.timer.Now()
	more := false
	if !e.uses.IsZero() && !now.Before(e.uses) {
		more = e.stampUsed()
	}
	if at, ok := e.table.Next(); ok && at <= now.UnixMilli() && (e.going || !now.Before(e.last.Add(e.a.l.cfg.HeartbeatInterval))) {
		more = e.expire(now) || more
	}
	if e.going = more; more {
		e.a.ctx.Send(e.a.ctx.Self(), goOn{})
		return
	}
	e.arm()
}

// stampUsed stamps entries that were read, and reports whether there are more.
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

// expire deletes what it is this member's turn to delete, and reports whether there may be more.
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

// sees reports whether this member knows enough to delete entries of a domain: it has been refilled, and sees more than half of
// the members that majorities are counted in, so that it has heard of uses elsewhere. Without majorities some time has to
// do.
func (e *expirer) sees(d *domain, now time.Time) bool {
	if d.durable && d.loading() {
		return false
	}
	if e.a.l.cfg.MinMembers == 0 {
		return now.Sub(e.began) >= e.a.l.cfg.turn()
	}
	roll := d.core.Rollcall()
	return d.core.Ready() && roll != nil && 2*len(roll.Missing()) < roll.Counted
}

// byDomain parts keys.
func (e *expirer) byDomain(keys []string) map[*domain][]string {
	parts := map[*domain][]string{}
	for _, key := range keys {
		d := e.a.of(key)
		parts[d] = append(parts[d], key)
	}
	return parts
}

// stamp stamps entries of a domain, as far as their stamps are too old.
func (e *expirer) stamp(d *domain, keys []string) {
	if len(keys) == 0 || d.durable && d.loading() {
		return
	}
	s, n := e.a.l.ttls.stamper(0), 0
	d.step(core.Update{Modify: func(t *core.Txn) error {
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

// remove deletes entries of a domain, unless they have been used since it was decided.
func (e *expirer) remove(d *domain, due []expiry.Due) {
	if len(due) == 0 {
		return
	}
	n := 0
	d.step(core.Update{Modify: func(t *core.Txn) error {
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
