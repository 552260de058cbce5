package core_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// node is one process: a session, a candidate for the coordinator, a region, and the entities of
// its shards.
type node struct {
	w       *world
	i       int
	inc     uint64
	up      bool
	born    time.Duration
	woke    time.Duration
	paused  time.Duration
	asleep  bool
	backlog []func()
	seen    core.View

	gen        int // of the session
	validUntil time.Duration
	lastRenew  time.Duration
	lastFail   time.Duration

	alloc      *core.Allocation
	allocGen   int
	allocEpoch uint64
	stood      time.Duration            // when the present tenure as the coordinator began
	contacts   map[core.Member]*contact // of that tenure
	reports    int                      // sent
	coordTry   uint64
	coordBusy  bool
	silent     bool // the function that chooses homes does not answer
	coordHas   int  // session of an attempt that is not certainly released

	region  *core.Region
	wakeAt  time.Time
	hosts   []*host
	pace    core.Pace
	room    core.Room
	grants  []grant    // by shard
	shown   []shown    // by shard
	outs    []lane.Out // by shard
	flows   map[core.Member]*lane.Flow
	leaving bool
	breaker *core.Breaker
	counter int
	heard   []core.Version
	not     []time.Duration      // since when each shard is not assigned here
	asked   map[core.Tenure]bool // of other members, and whether that will not be answered
}

// grant is what the node believes it holds.
type grant struct {
	token, attempt uint64
	gen            int
}

// names are the ids of the members.
var names = [...]string{"n0", "n1", "n2", "n3", "n4"}

func (n *node) me() core.Member { return core.Member{ID: names[n.i], Incarnation: n.inc} }

func (n *node) session(gen int) session { return session{n.me(), gen} }

// run runs f on this node, now or when it wakes.
func (n *node) run(f func()) {
	if n.asleep {
		n.backlog = append(n.backlog, f)
		return
	}
	f()
}

// after runs f on this node, in this incarnation.
func (n *node) after(d time.Duration, f func()) {
	inc := n.inc
	n.w.After(d, func() {
		if n.up && n.inc == inc {
			n.run(f)
		}
	})
}

func (n *node) every(d time.Duration, f func()) {
	var again func()
	again = func() {
		f()
		n.after(d, again)
	}
	n.after(d, again)
}

func (n *node) boot() {
	w, now := n.w, n.w.Elapsed()
	n.inc++
	n.up, n.born, n.paused, n.asleep, n.backlog, n.seen = true, now, 0, false, nil, core.View{}
	n.gen, n.validUntil, n.lastRenew, n.lastFail = 1, 0, now, -time.Hour
	n.alloc, n.coordTry, n.coordBusy, n.coordHas = nil, 0, false, 0
	cfg := config(w.opt.shards)
	n.region, n.wakeAt, n.leaving = core.NewRegion(cfg), time.Time{}, false
	n.hosts, n.grants = make([]*host, w.opt.shards), make([]grant, w.opt.shards)
	n.shown, n.outs = make([]shown, w.opt.shards), make([]lane.Out, w.opt.shards)
	n.flows = map[core.Member]*lane.Flow{}
	room := lane.NewRoom(cfg.Buffer, cfg.BufferBytes)
	for s := range n.outs {
		n.outs[s] = lane.NewOut(room)
	}
	n.heard, n.not = make([]core.Version, w.opt.shards), make([]time.Duration, w.opt.shards)
	n.room, n.asked = lane.NewHeld(1<<20), map[core.Tenure]bool{}
	if w.opt.pace > 0 {
		n.pace = lane.NewPace(w.opt.pace)
	}
	for s := range n.hosts {
		n.hosts[s] = &host{n: n, s: s, entities: map[string]*entity{}}
	}
	n.breaker = core.NewBreaker(core.BreakerConfig{Trip: cfg.Fit, Wait: 3000 * ms,
		MaxWait: 6000 * ms})
	n.renew()
	n.every(renewal, n.renew)
	n.every(250*ms, n.candidacy)
	n.every(50*ms, n.traffic)
}

func (n *node) crash() {
	n.up = false
	for _, h := range n.hosts {
		for _, e := range h.entities {
			e.dead = true
			n.w.gone(e)
		}
	}
}

// ---- the session

func (n *node) stopBy() time.Duration { return n.validUntil - drain }
func (n *node) backed() bool          { return n.validUntil != 0 && n.w.Elapsed() < n.stopBy() }

// check reports whether a tenure of this session may start work.
func (n *node) check(gen int) bool { return gen == n.gen && n.backed() }

func (n *node) renew() {
	w, sent, gen := n.w, n.w.Elapsed(), n.gen
	h := n.session(gen)
	n.call(func() any { w.store.renew(h); return nil }, func(_ any, ok bool) {
		now := w.Elapsed()
		if !ok {
			n.lastFail = now
			n.heed()
			return
		}
		n.lastRenew = now
		n.heed()
		if gen != n.gen {
			return
		}
		if n.validUntil != 0 && now >= n.stopBy() { // too late: the loss is final
			n.lose()
			return
		}
		n.validUntil = max(n.validUntil, sent+ttl-margin)
		n.after(n.stopBy()-now, func() {
			if gen == n.gen && w.Elapsed() >= n.stopBy() {
				n.lose()
			}
		})
	})
}

// failing reports whether the session is near expiry: one failed call is not an outage.
func (n *node) failing() bool { return n.w.Elapsed() >= n.lastRenew+2*renewal+operation+200*ms }

// heed passes what is known about the stores to the region.
func (n *node) heed() {
	ev := core.Store{Failing: n.failing()}
	if n.w.opt.remember {
		if n.breaker.Suspects(n.w.Now()) && !n.askAnother() {
			n.breaker.Trip()
		}
		ev.Memory = n.breaker.Memory(n.w.Now())
	}
	n.step(ev)
}

// askAnother stores an entity again in a shard whose calls have not failed.
func (n *node) askAnother() bool {
	for s, h := range n.hosts {
		if phase, _ := n.region.Phase(s); phase != core.Running || n.breaker.Failed(s) {
			continue
		}
		if id, ok := h.slot.Remembered(); ok {
			n.breaker.Ask(n.w.Now(), s)
			h.write(write{id: id, again: true})
			return true
		}
	}
	return false
}

// lose ends all tenures of the session; the next renewal opens another session.
func (n *node) lose() {
	n.w.stat.lost++
	old := n.gen
	n.gen++
	n.validUntil, n.alloc = 0, nil
	for s, g := range n.grants {
		if g.gen == old && g.token != 0 {
			n.step(core.Lost{Shard: s, Token: g.token})
		}
	}
	n.renew()
}

// ---- the region

func (n *node) onView(v core.View) {
	n.seen = v
	n.step(v)
	maps.DeleteFunc(n.flows, func(m core.Member, _ *lane.Flow) bool { return !n.sees(m) })
	if n.alloc != nil {
		n.stepAlloc(v)
	}
}

func (n *node) sees(m core.Member) bool {
	return slices.Contains(n.seen.Members, m)
}

func (n *node) receive(from core.Member, m core.Message) {
	if r, ok := m.(core.Report); ok {
		if n.alloc != nil {
			n.hears(from, r)
			n.stepAlloc(core.Received{From: from, Message: m})
		}
		return
	}
	if d, ok := m.(core.Data); ok {
		n.takes(from, d)
		return
	}
	t, asks := m.(core.Table)
	asks = asks && n.sees(from) && t.Epoch >= n.region.Epoch()
	reports := n.reports
	if t, ok := m.(core.Taken); ok {
		if f := n.flows[from]; f == nil || !f.Confirm(t.Bytes) {
			return
		}
	}
	n.step(core.Received{From: from, Message: m})
	if asks && n.reports == reports {
		n.w.Fail("%v does not answer a table", n.me())
	}
}

// takes accepts a message without a step of the region, as far as possible. What the region needs
// to know of it comes later, through its mailbox.
func (n *node) takes(from core.Member, d core.Data) {
	notes := func(ev core.Event) { n.after(0, func() { n.step(ev) }) }
	v := n.hosts[d.Shard].in.Take(from, d)
	n.w.Note("%v takes %+v of %v: %d", n.me(), d, from, v)
	switch {
	case v == lane.Strange:
		notes(core.Received{From: from, Message: d})
	case v == lane.Repeated:
	case d.Delivery != 0:
		notes(core.Arrived{From: from, Data: d})
	default:
		n.hosts[d.Shard].take(d.Token, d.Body)
		if v == lane.Awaited {
			d.Body = core.Body{}
			notes(core.Arrived{From: from, Data: d})
		}
	}
}

func (n *node) step(ev core.Event) {
	for _, e := range slices.Clone(n.region.Step(n.w.Now(), ev)) {
		n.carryOut(e)
	}
	n.publish()
	n.arm()
}

// shown is what a member publishes about a shard.
type shown struct {
	phase core.Phase
	token uint64
	home  core.Version
}

// publish publishes the changed shards, and checks that no other shard has changed.
func (n *node) publish() {
	now := func(s int) shown {
		phase, token := n.region.Phase(s)
		return shown{phase, token, n.region.Home(s).Version}
	}
	for _, s := range n.region.Changed() {
		n.shown[s] = now(s)
	}
	for s, was := range n.shown {
		if is := now(s); is != was {
			n.w.Fail("shard %d of %v is shown as %v, and is %v", s, n.me(), was, is)
		}
	}
}

func (n *node) arm() {
	at := n.region.NextWake()
	if at.IsZero() || !n.wakeAt.IsZero() && !n.wakeAt.After(at) && n.wakeAt.After(n.w.Now()) {
		return
	}
	n.wakeAt = at
	n.after(max(at.Sub(n.w.Now()), ms), func() {
		if n.wakeAt.Equal(at) {
			n.wakeAt = time.Time{}
			n.step(core.Wake{})
		}
	})
}

func (n *node) tell(to core.Member, m core.Message) {
	if _, ok := m.(core.Report); ok {
		n.reports++
	}
	if to == n.me() {
		n.after(0, func() { n.receive(n.me(), m) })
		return
	}
	o := n.w.node(to)
	switch m := m.(type) {
	case core.Data:
		if n.outs[m.Shard].Token() == m.Token && n.posts(m) {
			n.departs(m)
		} else {
			n.step(core.NoCredit{Shard: m.Shard, Token: m.Token, Number: m.Delivery,
				Again: m.Again})
		}
		return
	case core.Flush:
		m.Number = n.outs[m.Shard].Last(m.Token)
		n.passes(o, to, m)
		return
	case core.Sent:
		if f := n.flows[to]; f != nil && f.Open() {
			n.passes(o, to, core.Sent{Bytes: f.Mark()})
		}
		return
	}
	n.passes(o, to, m)
}

// passes sends a message if its receiver is still there.
func (n *node) passes(o *node, to core.Member, m core.Message) {
	if o != nil && o.me() == to {
		n.w.send(n, o, m)
	}
}

func (n *node) carryOut(e core.Effect) {
	w := n.w
	switch e := e.(type) {
	case core.Tell:
		n.tell(e.To, e.Message)
		return
	case core.Acquire:
		n.acquire(e)
	case core.Release:
		n.release(e)
	case core.Start:
		n.hosts[e.Shard].start(e.Token)
	case core.Admit:
		if counted, ok := n.hosts[e.Shard].in.Admit(e); ok {
			n.after(0, func() { n.step(counted) })
		}
	case core.Stop:
		n.hosts[e.Shard].local = false
		n.hosts[e.Shard].step(core.StopAll{
			StoreFails: n.breaker.Memory(w.Now()) == core.MemoryFails})
	case core.StopNow:
		n.hosts[e.Shard].local = false
		n.hosts[e.Shard].step(core.StopAllNow{})
	case core.Deliver:
		e.Body.Value = n.arrives(e)
		n.hosts[e.Shard].take(e.Token, e.Body)
		return
	case core.Conclude:
		n.concluded(e)
	case core.Open:
		n.opens(e)
	case core.Shut:
		if n.outs[e.Shard].Shut(); n.outs[e.Shard].Len() > 0 {
			n.after(0, func() { n.step(core.Waits(e)) })
		}
	case core.Drop:
		if w.opt.planned && !e.Repeated {
			w.Fail("planned: a message meets no tenure")
		}
	case core.Orphaned:
		n.fails(e)
	case core.Look:
		n.look()
	}
	w.Note("%v: %T%+v", n.me(), e, e)
}

// acquire makes an attempt. An attempt with an unknown result is released, as sessions do.
func (n *node) acquire(e core.Acquire) {
	w := n.w
	no := core.NotHeld{Shard: e.Shard, Attempt: e.Attempt}
	if !n.backed() {
		n.after(100*ms, func() { n.step(no) })
		return
	}
	gen := n.gen
	h := n.session(gen)
	n.call(func() any { return w.store.acquire(e.Shard, h, e.Attempt) }, func(a any, ok bool) {
		g, _ := a.(granted)
		switch {
		case !ok, g.ok && !n.check(gen):
			n.takeBack(e.Shard, gen, e.Attempt, func() {})
			n.step(no)
		case !g.ok:
			if w.opt.planned {
				w.Fail("planned: a lease is asked for while another holds it")
			}
			no.Taken = true
			n.step(no)
		default:
			n.grants[e.Shard] = grant{g.token, e.Attempt, gen}
			n.step(core.Held{Shard: e.Shard, Attempt: e.Attempt, Token: g.token})
		}
	})
}

// takeBack releases until the release is certain or the session has ended.
func (n *node) takeBack(shard, gen int, attempt uint64, done func()) {
	h := n.session(gen)
	n.call(func() any { n.w.store.release(shard, h, attempt); return nil }, func(_ any, ok bool) {
		if !ok && gen == n.gen {
			n.after(200*ms, func() { n.takeBack(shard, gen, attempt, done) })
			return
		}
		done()
	})
}

func (n *node) release(e core.Release) {
	g := n.grants[e.Shard]
	if g.token == e.Token {
		n.grants[e.Shard] = grant{}
	}
	if h := n.hosts[e.Shard]; len(h.entities) > 0 {
		n.w.Fail("a lease is released while entities live under it")
	}
	certain := g.gen == n.gen
	if g.token == e.Token { // its entities have ended
		n.w.inOrder[core.Tenure(e)] = true
	}
	n.takeBack(e.Shard, g.gen, g.attempt, func() {
		n.step(core.Released{Shard: e.Shard, Token: e.Token, Certain: certain})
	})
}

// look reads the holder of the coordinator's lease.
func (n *node) look() {
	w := n.w
	type holder struct {
		h  session
		ok bool
	}
	n.call(func() any {
		h, ok := w.store.holder(coordName)
		return holder{h, ok}
	}, func(a any, ok bool) {
		h, _ := a.(holder)
		other := ok && h.ok && h.h.member != n.me()
		n.step(core.Looked{Other: other})
		if n.region.Orphan() {
			w.stat.orphans++
			if !other && !n.leaving { // S9c
				w.Fail("shards are given up although no other coordinator is there")
			}
		}
	})
}

// traffic sends messages from this node, in bursts, so that entities are idle at times.
func (n *node) traffic() {
	w := n.w
	if w.opt.keep && w.Elapsed() > startUp+w.opt.every { // entities now run without messages
		return
	}
	if w.acting && (int(w.Elapsed()/(500*ms))+n.i)%3 != 0 {
		n.say(n.counter % (w.opt.shards * w.opt.entities))
	}
}

func (n *node) say(entity int) {
	n.counter++
	n.w.stat.sent++
	m := message{messageID: messageID{n.me(), entity, n.counter}}
	if n.w.opt.deliver && n.counter%2 == 0 {
		n.delivers(m)
		return
	}
	n.tells(entity%n.w.opt.shards, core.Body{ID: fmt.Sprint(entity), Value: m, Size: 10})
}

// tells sends a message without a step of the region, or lets it wait if that is not possible or
// earlier messages wait.
func (n *node) tells(shard int, b core.Body) {
	out := &n.outs[shard]
	if out.Len() == 0 && n.posts(core.Data{Shard: shard, Body: b}) {
		return
	}
	first, ok := out.Wait(b)
	switch {
	case !ok && n.w.opt.planned:
		n.w.Fail("planned: a message is refused")
	case first:
		n.after(0, func() { n.step(core.Waits{Shard: shard}) })
	}
}

// posts sends a message to the known tenure, or returns false if it must wait.
func (n *node) posts(d core.Data) bool {
	out := &n.outs[d.Shard]
	if h := n.hosts[d.Shard]; h.local && d.Delivery == 0 {
		h.take(h.token, d.Body)
		return true
	}
	t, ok := out.Next(d.Body.Size)
	if !ok {
		return false
	}
	d.Token, d.Number = t.Token, t.Number
	n.asks(d)
	if o := n.w.node(t.To); o != nil && o.me() == t.To {
		n.w.stream(n, o, d)
	}
	if t.Ask != 0 {
		n.passes(n.w.node(t.To), t.To, core.Sent{Bytes: t.Ask})
	}
	return true
}

// opens sends what waits to a tenure, and what follows.
func (n *node) opens(e core.Open) {
	out := &n.outs[e.Shard]
	if e.Host == n.me() {
		out.Open(e.Host, e.Token, nil)
		n.hosts[e.Shard].local = n.hosts[e.Shard].token == e.Token
	} else {
		if n.flows[e.Host] == nil {
			n.flows[e.Host] = lane.NewFlow(400) // five messages
		}
		out.Open(e.Host, e.Token, n.flows[e.Host])
	}
	for b, ok := out.First(); ok; b, ok = out.First() {
		if !n.posts(core.Data{Shard: e.Shard, Body: b}) {
			if e.Host == n.me() {
				return
			}
			n.after(0, func() { n.step(core.Blocked{Shard: e.Shard, Token: e.Token}) })
			return
		}
		out.Pop()
	}
}
