package core_test

import (
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// candidacy is a minimal singleton: the oldest visible member takes the coordinator's lease.
func (n *node) candidacy() {
	w := n.w
	want := true
	for _, m := range n.seen.Members {
		if o := w.node(m); o.me() == m && (o.born < n.born || o.born == n.born && o.i < n.i) {
			want = false
		}
	}
	switch {
	case n.alloc != nil && (!want || !n.check(n.allocGen)):
		n.alloc = nil
	case n.alloc == nil && n.coordHas != 0 && !n.coordBusy && (!want || n.coordHas != n.gen):
		// also if the lease is granted later
		n.resign()
	case n.alloc == nil && want && !n.coordBusy && n.backed():
		n.stand()
	}
	if n.alloc != nil {
		n.stepAlloc(core.Wake{})
	}
}

func (n *node) resign() {
	n.coordBusy = true
	gen := n.coordHas
	h, a := n.session(gen), n.coordTry
	n.call(func() any { n.w.store.release(coordName, h, a); return nil }, func(_ any, ok bool) {
		n.coordBusy = false
		if ok || gen != n.gen {
			n.coordHas = 0
		}
	})
}

func (n *node) stand() {
	n.coordBusy = true
	n.coordTry++
	gen := n.gen
	n.coordHas = gen
	h, a := n.session(gen), n.coordTry
	n.call(func() any { return n.w.store.acquire(coordName, h, a) }, func(x any, ok bool) {
		n.coordBusy = false
		g, _ := x.(granted)
		if !ok || !g.ok || !n.check(gen) {
			return
		}
		n.w.Note("%v is the coordinator of epoch %d", n.me(), g.token)
		n.silent, n.contacts, n.stood = false, map[core.Member]*contact{}, n.w.Elapsed()
		n.alloc, n.allocGen, n.allocEpoch = core.NewAllocation(n.w.opt.config(), g.token, nil), gen,
			g.token
		n.stepAlloc(n.seen)
		var known []core.Entry
		for s := range n.w.opt.shards {
			if e := n.region.Home(s); e.Version.N != 0 {
				known = append(known, core.Entry{Shard: s, Assignment: e})
			}
		}
		n.stepAlloc(core.Known{Entries: known})
		n.hearOverrides()
	})
}

func (n *node) stepAlloc(ev core.Event) {
	_, choice := ev.(core.Move)
	choice = choice || n.w.opt.override != nobody // some overrides move shards
	for _, e := range n.alloc.Step(n.w.Now(), ev) {
		switch e := e.(type) {
		case core.Tell:
			if _, ok := e.Message.(core.Table); ok {
				n.contact(e.To).tells(n.w.Elapsed())
			}
			n.tell(e.To, e.Message)
		case core.Consult:
			n.consult(e)
		case core.Assigned:
			n.w.Note("%v: assigned %+v", n.me(), e)
			n.w.stat.moves++
			if !choice {
				n.justified(e)
			}
		}
	}
}

// contact is what a coordinator did in its tenure to hear a member, and when it heard it.
type contact struct {
	since, told time.Duration // first and last Table of those without a longer gap than two beats
	fit         time.Duration // through when the member is fit, by its last Report or by the start
	beat        uint64        // of that Report
}

func (n *node) contact(m core.Member) *contact {
	c := n.contacts[m]
	if c == nil {
		c = &contact{fit: n.stood + config(1).Fit - 1}
		n.contacts[m] = c
	}
	return c
}

func (c *contact) tells(now time.Duration) {
	if c.told == 0 || now > c.told+2*config(1).Beat {
		c.since = now
	}
	c.told = now
}

// hears takes note of a Report. Only one that names the present epoch is an answer, and only to a
// later Table than the last answer.
func (n *node) hears(from core.Member, r core.Report) {
	if c := n.contact(from); r.Epoch == n.allocEpoch && r.Beat > c.beat && n.sees(from) {
		c.fit, c.beat = n.w.Elapsed()+config(1).Fit, r.Beat
	}
}

// muted reports whether the network alone has silenced a member: no Report has arrived for Fit,
// although the coordinator sent a Table every beat. That each Table is answered is checked where it
// arrives.
func (n *node) muted(m core.Member) bool {
	now, beat, c := n.w.Elapsed(), config(1).Beat, n.contact(m)
	return now > c.fit && now <= c.told+2*beat && c.since+config(1).Fit <= now+2*beat
}

// justified fails the history if a shard is taken from a healthy home that the coordinator has
// heard within Fit, or could have heard.
func (n *node) justified(e core.Assigned) {
	w := n.w
	if len(e.Before) == 0 {
		return
	}
	o := w.node(e.Before[0])
	if o == nil || !o.up || o.me() != e.Before[0] || o.leaving || !n.sees(o.me()) ||
		w.IsCut(n.i, o.i) || w.IsCut(o.i, n.i) || n.muted(o.me()) {
		return
	}
	now := w.Elapsed()
	if phase, _ := o.region.Phase(e.Shard); phase == core.Running && now > o.lastFail+3000*ms &&
		now > w.trouble[o.i]+6000*ms && now > w.trouble[n.i]+6000*ms {
		w.Fail("the coordinator takes a shard from a home that is well")
	}
}
