package core_test

import (
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// host carries out what the slot of one shard at one node wants.
type host struct {
	n        *node
	s        int
	token    uint64
	gen      int
	slot     *core.Slot
	wakeAt   time.Time
	entities map[string]*entity // those that run
}

func (h *host) start(token uint64) {
	h.token, h.gen = token, h.n.grants[h.s].gen
	h.slot = core.NewSlot(core.SlotConfig{Idle: 120 * ms, Stash: 1000, BackOff: 50 * ms, MaxBackOff: time.Second, Failures: 8})
	h.n.w.Note("%v runs shard %d under %d", h.n.me(), h.s, token)
}

func (h *host) take(token uint64, b core.Body) {
	if token == h.token {
		h.step(core.Take{Body: b})
	}
}

func (h *host) step(ev core.SlotEvent) {
	slot := h.slot
	for _, e := range append([]core.SlotEffect(nil), slot.Step(h.n.w.Now(), ev)...) {
		h.carryOut(e)
	}
	at := slot.NextWake()
	if at.IsZero() || !h.wakeAt.IsZero() && !h.wakeAt.After(at) && h.wakeAt.After(h.n.w.Now()) {
		return
	}
	h.wakeAt = at
	h.n.after(max(at.Sub(h.n.w.Now()), ms), func() {
		if h.slot == slot && h.wakeAt.Equal(at) {
			h.wakeAt = time.Time{}
			h.step(core.Pass{})
		}
	})
}

func (h *host) carryOut(e core.SlotEffect) {
	w := h.n.w
	switch e := e.(type) {
	case core.Spawn:
		if h.entities[e.ID] != nil {
			w.Fail("two live incarnations of entity %s at one member", e.ID)
		}
		x := &entity{h: h, slot: h.slot, name: e.ID, run: e.Run, token: h.token}
		h.entities[e.ID] = x
		w.alive[e.ID] = append(w.alive[e.ID], x)
	case core.Push:
		h.entities[e.ID].deliver(e.Body)
	case core.End:
		h.entities[e.ID].stop()
	case core.Slay:
		h.entities[e.ID].kill()
	case core.Reject:
		if w.opt.planned {
			w.Fail("planned: a message to an entity is rejected")
		}
	case core.Empty:
		token := h.token
		h.n.after(0, func() { h.n.step(core.Ended{Shard: h.s, Token: token}) })
	}
	w.Note("%v, shard %d: %T%+v", h.n.me(), h.s, e, e)
}

// entity is one incarnation of an entity: an actor with a mailbox.
type entity struct {
	h       *host
	slot    *core.Slot
	name    string
	run     uint64
	token   uint64
	mailbox []core.Body
	since   time.Duration // busy
	busy    bool
	ending  bool
	killing bool
	failed  bool
	worked  bool
	dead    bool
}

func (e *entity) deliver(b core.Body) {
	if e.ending {
		e.h.n.w.Fail("a message is behind the stop message of entity %s", e.name)
	}
	e.mailbox = append(e.mailbox, b)
	if len(e.mailbox) == 1 {
		e.h.n.after(0, e.work)
	}
}

// stop lets the entity handle what it has, and end.
func (e *entity) stop() {
	e.ending = true
	e.h.n.after(ms, e.work) // the way of the stop message through the mailbox
}

func (e *entity) kill() {
	e.killing = true
	if !e.busy {
		e.end()
	}
}

// work handles the next message, under the tenure alone.
func (e *entity) work() {
	n := e.h.n
	switch {
	case e.dead || e.busy:
		return
	case e.killing, len(e.mailbox) == 0 && e.ending && !n.check(e.h.gen): // nor is a stop message handled
		e.end()
		return
	case len(e.mailbox) == 0 && !e.ending:
		return
	}
	stop := len(e.mailbox) == 0
	if !stop {
		b := e.mailbox[0]
		e.mailbox = e.mailbox[1:]
		if !n.check(e.h.gen) || e.token != e.h.token {
			e.h.n.after(0, e.work)
			return
		}
		n.w.handle(e, b.Value.(message))
		e.worked = true
	}
	e.busy, e.since = true, n.w.Elapsed()
	d := 2 * ms
	if n.w.acting && n.w.Chance("slow", n.w.p.slow) {
		d = []time.Duration{40 * ms, 300 * ms}[n.w.Number("how-slow", 0, 1)]
	}
	n.after(d, func() {
		e.busy = false
		e.done(stop)
	})
}

// done goes on after a message. Some entities stop by themselves, some fail.
func (e *entity) done(stop bool) {
	w := e.h.n.w
	if !stop && !e.ending && w.acting && w.Chance("ends-itself", w.p.slow/5) {
		e.failed = w.Chance("fails", 0.5)
		stop = true
	}
	if stop {
		e.end()
		return
	}
	e.work()
}

func (e *entity) end() {
	if e.dead {
		return
	}
	h := e.h
	e.dead = true
	h.n.w.gone(e)
	delete(h.entities, e.name)
	if h.slot == e.slot {
		h.step(core.Terminated{ID: e.name, Run: e.run, Left: e.mailbox, Failed: e.failed, Worked: e.worked})
	}
}
