package core_test

import (
	"strconv"
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// host carries out the effects of the slot of one shard on one node.
type host struct {
	in       lane.In
	local    bool // messages of this member enter here
	n        *node
	s        int
	token    uint64
	gen      int
	slot     *core.Slot
	wakeAt   time.Time
	entities map[string]*entity // running entities
	writes   []write            // pending changes of the remembered entities, in order
	recalled bool               // they were read in this tenure
}

// write remembers an entity, or forgets it.
type write struct {
	id     string
	forget bool
	again  bool // it is remembered already
}

func (h *host) start(token uint64) {
	h.token, h.gen = token, h.n.grants[h.s].gen
	h.writes, h.recalled = nil, false
	idle := 120 * ms
	remember, keep := h.n.w.opt.remember, h.n.w.opt.keep
	switch {
	case remember:
		idle = 0
		defer h.recall()
	case keep:
		idle = 0
		defer func() { h.step(core.Recalled{IDs: []string{strconv.Itoa(h.s)}}) }()
	}
	h.slot = core.NewSlot(core.SlotConfig{Idle: idle, Remember: remember || keep, Keep: keep,
		Limit: h.n.w.opt.limit, Stash: 1000, BackOff: 50 * ms,
		MaxBackOff: time.Second, Failures: 8, Pace: h.n.pace, Room: h.n.room})
	h.n.w.Note("%v runs shard %d under %d", h.n.me(), h.s, token)
}

func (h *host) take(token uint64, b core.Body) {
	if token == h.token && h.slot != nil {
		h.step(core.Take{Body: b})
		return
	}
	h.unhandled(b)
}

func (h *host) step(ev core.SlotEvent) {
	slot := h.slot
	for _, e := range append([]core.SlotEffect(nil), slot.Step(h.n.w.Now(), ev)...) {
		h.carryOut(e)
	}
	h.count()
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

// count checks that no more entities run than allowed.
func (h *host) count() {
	running := 0
	for _, e := range h.entities {
		if !e.ending && !e.stopsNow {
			running++
		}
	}
	if limit := h.n.w.opt.limit; limit > 0 && running > limit {
		h.n.w.Fail("bound: %d entities run at %v, at most %d", running, h.n.me(), limit)
	}
}

// recall reads the entities that a majority remembers, after some time, and adds them again.
func (h *host) recall() {
	slot, w := h.slot, h.n.w
	h.n.after(w.quorum(), func() {
		if h.slot != slot {
			return
		}
		if !h.reaches() {
			h.n.after(200*ms, func() {
				if h.slot == slot {
					h.recall()
				}
			})
			return
		}
		h.recalled = true
		var ids []string
		for i := range w.opt.entities * w.opt.shards {
			if id := strconv.Itoa(i); i%w.opt.shards == h.s && w.known[id] > 0 {
				w.add(id)
				ids = append(ids, id)
			}
		}
		h.step(core.Recalled{IDs: ids})
	})
}

// reaches reports whether a call of the store of remembered entities succeeds.
func (h *host) reaches() bool {
	ok := h.n.w.forgetful[h.n.i] <= h.n.w.Elapsed()
	h.n.breaker.Called(h.n.w.Now(), h.s, ok)
	return ok
}

func (w *world) add(id string) {
	w.adds++
	w.known[id] = w.adds
}

// quorum returns how long a majority operation takes.
func (w *world) quorum() time.Duration {
	if w.acting && w.Chance("slow-quorum", w.p.slow) {
		return []time.Duration{40 * ms, 300 * ms}[w.Number("how-slow-quorum", 0, 1)]
	}
	return 4 * ms
}

func (h *host) write(wr write) {
	if h.writes = append(h.writes, wr); len(h.writes) == 1 {
		h.writeNext(h.slot)
	}
}

// writeNext carries out the first write. An entity to forget is looked up under the tenure. It is
// removed at any time after that, unless it was added again in the meantime.
func (h *host) writeNext(slot *core.Slot) {
	w, wr := h.n.w, h.writes[0]
	if !h.reaches() {
		h.n.after(200*ms, func() {
			if h.slot == slot {
				h.writeNext(slot)
			}
		})
		return
	}
	seen, may := w.known[wr.id], h.n.check(h.gen) && h.n.grants[h.s].token == h.token
	if wr.forget && may {
		w.After(w.quorum(), func() {
			if w.known[wr.id] == seen {
				delete(w.known, wr.id)
			}
		})
	}
	h.n.after(w.quorum(), func() {
		if h.slot != slot {
			return
		}
		h.writes = h.writes[1:]
		if !wr.forget {
			w.add(wr.id)
		}
		if !wr.forget && !wr.again {
			h.step(core.Remembered{IDs: []string{wr.id}})
		}
		if len(h.writes) > 0 {
			h.writeNext(slot)
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
		if w.opt.keep {
			x.tires()
		}
	case core.Push:
		h.entities[e.ID].deliver(e.Body)
	case core.StopEntity:
		h.entities[e.ID].stop()
	case core.StopEntityNow:
		h.entities[e.ID].stopNow()
	case core.Reject:
		if w.opt.planned {
			w.Fail("planned: a message to an entity is rejected")
		}
		h.unhandled(e.Body)
	case core.Remember, core.Forget:
		if w.opt.keep {
			w.Fail("what is to be kept running is not a constant: %T%+v", e, e)
			return
		}
		h.write(writeOf(e))
	case core.Empty:
		if n := h.slot.Held(); n != 0 {
			w.Fail("%d messages wait in an empty slot", n)
		}
		token := h.token
		h.n.after(0, func() { h.n.step(core.Ended{Shard: h.s, Token: token}) })
	}
	w.Note("%v, shard %d: %T%+v", h.n.me(), h.s, e, e)
}

func writeOf(e core.SlotEffect) write {
	if f, ok := e.(core.Forget); ok {
		return write{id: f.ID, forget: true}
	}
	return write{id: e.(core.Remember).ID}
}

// tires makes an entity ask, at some time, to stop and to be forgotten.
func (e *entity) tires() {
	e.h.n.after(time.Duration(100+e.h.n.w.Number("tires", 0, 900))*ms, func() {
		if h := e.h; !e.dead && !e.ending && !e.stopsNow && h.n.w.acting && h.slot == e.slot {
			h.step(core.Passivate{ID: e.name, Run: e.run, Forget: e.run%2 == 0})
		}
	})
}

// entity is one incarnation of an entity: an actor with a mailbox.
type entity struct {
	h        *host
	slot     *core.Slot
	name     string
	run      uint64
	token    uint64
	mailbox  []core.Body
	since    time.Duration // busy
	busy     bool
	ending   bool
	stopsNow bool
	failed   bool
	worked   bool
	current  message // being handled
	dead     bool
	forgets  bool // it has asked to be forgotten
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

// stop lets the entity handle its messages, and then stop.
func (e *entity) stop() {
	e.ending = true
	e.h.n.after(ms, e.work) // the stop message's way through the mailbox
}

func (e *entity) stopNow() {
	e.stopsNow = true
	if !e.busy {
		e.end()
	}
}

// work handles the next message, provided that the tenure is valid.
func (e *entity) work() {
	n := e.h.n
	switch {
	case e.dead || e.busy:
		return
	case e.stopsNow, len(e.mailbox) == 0 && e.ending && !n.check(e.h.gen):
		// nor is a stop message handled
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
		e.current = b.Value.(message)
		n.w.handle(e, e.current)
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

// done continues after a message. Some entities stop by themselves, some fail.
func (e *entity) done(stop bool) {
	w := e.h.n.w
	if !stop && !e.ending && w.acting && w.Chance("ends-itself", w.p.slow/5) {
		e.failed = w.Chance("fails", 0.5)
		stop = true
	}
	e.h.handled(e)
	if (w.opt.remember || w.opt.keep) && !stop && !e.ending && w.acting &&
		w.Chance("is-forgotten", w.p.slow/5) {
		e.forgets = true
		e.h.step(core.Passivate{ID: e.name, Run: e.run, Forget: true})
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
		h.step(core.Terminated{ID: e.name, Run: e.run, Left: e.mailbox, Failed: e.failed,
			Worked: e.worked})
	}
}
