package sharding

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// place holds one shard on this member while it is active here. The messages of this process enter
// it in the goroutine of the sender. User code never runs under its mutex.
type place struct {
	binding *binding
	n       int
	away    atomic.Bool // messages of this process go to another member, as far as is known

	mu     sync.Mutex
	in     lane.In
	out    lane.Out
	link   *link // last used
	door   bool  // messages of this process enter here, if none waits
	shut   bool  // no further message of this process is accepted
	status ShardStatus

	token  uint64
	tenure *coordination.Grant
	held   *held      // tenure, for cells
	slot   *core.Slot // nil: no tenure
	keeper *actor.PID
	closes bool      // the entities were asked to stop
	alone  bool      // the place itself must release the lease
	memory *memory   // nil: no entities are remembered
	armed  time.Time // when the keeper will be woken; zero: never

	after after // actions to perform without the mutex
}

// after holds the actions that a step of the slot has left to perform.
type after struct {
	spawns   []*cell
	rejected []core.Body
	overdue  []string // entities that did not stop
	located  []located
	ended    bool
	at       time.Time
}

// cell is one incarnation of an entity.
type cell struct {
	place  *place
	id     string
	run    uint64
	tenure *held
	box    mailbox
}

// held is the tenure of a shard. It is behind a pointer because that is half the size, in each of
// a million cells.
type held struct{ coordination.Tenure }

func (c *cell) entity() Entity {
	return Entity{Type: c.place.binding.cfg.Type, ID: c.id, Shard: c.place.n,
		Tenure: c.tenure.Tenure}
}

// name returns the name of the actor below its keeper; it is different for each incarnation.
func (c *cell) name() string { return c.id + "$" + strconv.FormatUint(c.run, 10) }

// path returns the id of the actor in its system.
func (c *cell) path(keeper *actor.PID) string {
	return keeper.Id + "/" + c.id + "$" + strconv.FormatUint(c.run, 10)
}

// cellOf returns the cell of an actor below a keeper, by its name, or nil if it has terminated.
func (p *place) cellOf(self, keeper *actor.PID) *cell {
	name := strings.TrimPrefix(self.Id, keeper.Id+"/")
	at := strings.LastIndexByte(name, '$')
	if at < 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.cell(name[:at]); c != nil && c.name() == name {
		return c
	}
	return nil
}

// cell returns the cell of an incarnation that has not terminated, or nil. The caller must hold the
// mutex.
func (p *place) cell(id string) *cell {
	if p.slot == nil {
		return nil
	}
	c, _ := p.slot.Cell(id).(*cell)
	return c
}

// send accepts a message of this process: it goes to its entity or to the member that hosts the
// shard, in the goroutine of the sender, or waits for the control actor.
func (p *place) send(id string, value any, c *call) error {
	if p.away.Load() && p.ship(id, value, c) {
		return nil
	}
	p.mu.Lock()
	switch {
	case p.shut:
		p.mu.Unlock()
		return ErrClosed
	case !p.door || p.out.Len() > 0:
		p.mu.Unlock()
		b := core.Body{ID: id, Value: &parcel{value: value, call: c}, Size: sizeOf(value)}
		return p.wait(b)
	}
	if b := (core.Body{ID: id, Value: value}); p.push(b) {
		p.mu.Unlock()
	} else {
		p.step(core.Take{Body: b})
		p.unlock()
	}
	return nil
}

// wait lets a message wait.
func (p *place) wait(b core.Body) error {
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return ErrClosed
	}
	first, ok := p.out.Wait(b)
	p.mu.Unlock()
	if !ok {
		return ErrBufferFull
	}
	if first {
		contain.Send(p.binding.system, p.binding.control, &waits{p.n})
	}
	return nil
}

// ship sends a message to the member that hosts the shard. It returns false if earlier messages
// wait, or this one must.
func (p *place) ship(id string, value any, c *call) (done bool) {
	err := pack(id, value, p.binding.view.Load().Self.Address, func(m *packet) {
		p.mu.Lock()
		defer p.mu.Unlock()
		done = p.out.Len() == 0 && !p.shut && p.post(m, c)
	})
	if err == nil {
		return done
	}
	p.mu.Lock()
	done = p.out.Away() && p.out.Len() == 0 && !p.shut
	p.mu.Unlock()
	if done {
		p.binding.refuse(id, &parcel{value: value, call: c}, err)
	}
	return done
}

// post passes a packet to the link to the host, with its number, or returns false if it must wait.
// The caller must hold the mutex.
func (p *place) post(m *packet, c *call) bool {
	t, ok := p.out.Next(len(m.payload))
	if !ok {
		return false
	}
	m.shard, m.token, m.number = p.n, t.Token, t.Number
	if p.link == nil || p.link.to != t.To || !p.link.parcel(m, t.Ask) {
		p.link = p.binding.link(t.To)
		p.link.parcel(m, t.Ask)
	}
	p.binding.calls.Sent(c, core.Tenure{Shard: p.n, Token: t.Token})
	return true
}

// enter opens the door to the tenure here. What has waited enters first.
func (p *place) enter(e core.Open) {
	p.mu.Lock()
	p.out.Open(e.Host, e.Token, nil)
	p.away.Store(false)
	if p.slot != nil && p.token == e.Token && !p.closes {
		for _, b := range p.out.Withdraw() {
			b.Value = b.Value.(*parcel).value
			p.hand(e.Token, b)
		}
		p.door = true
	}
	p.unlock()
}

// drain sends what has waited to the member that hosts the shard. It returns false if some must
// still wait. Only the control actor calls it.
func (p *place) drain(e core.Open, f *lane.Flow) bool {
	p.mu.Lock()
	p.out.Open(e.Host, e.Token, f)
	p.away.Store(true)
	for {
		b, ok := p.out.First()
		p.mu.Unlock()
		if !ok {
			return true
		}
		sent, body := false, b.Value.(*parcel)
		err := pack(b.ID, body.value, p.binding.view.Load().Self.Address, func(m *packet) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if sent = p.post(m, body.call); sent {
				p.out.Pop()
			}
		})
		if err == nil && !sent {
			return false
		}
		p.mu.Lock()
		if err != nil {
			p.out.Pop()
			p.mu.Unlock()
			p.binding.refuse(b.ID, b.Value, err)
			p.mu.Lock()
		}
	}
}

// shutOut lets the messages of this process wait, and reports whether some do.
func (p *place) shutOut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Shut()
	p.away.Store(false)
	return p.out.Len() > 0
}

// waiting returns how many messages of this process wait.
func (p *place) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Len()
}

// withdraw removes and returns the messages of this process that wait.
func (p *place) withdraw() []core.Body {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Withdraw()
}

// push passes a message to an entity that is running, the usual case, and reports whether it did.
// The caller must hold the mutex.
func (p *place) push(b core.Body) bool {
	if locates(b.Value) != nil {
		return false // a step answers it, without the mutex
	}
	now := time.Time{}
	if p.binding.cfg.Idle > 0 {
		now = p.binding.clock.Now()
	}
	c, ok := p.slot.Direct(now, b.ID)
	if !ok {
		return false
	}
	c.(*cell).box.post(post{message: b.Value, size: b.Size, from: slot})
	return true
}

// deliver accepts a delivery for a tenure.
func (p *place) deliver(token uint64, b core.Body) {
	p.mu.Lock()
	p.hand(token, b)
	p.unlock()
}

// hand passes a message to its entity. The caller must hold the mutex.
func (p *place) hand(token uint64, b core.Body) {
	switch {
	case p.slot == nil || p.token != token:
		p.after.rejected = append(p.after.rejected, b)
	case !p.push(b):
		p.step(core.Take{Body: b})
	}
}

// open begins a tenure in which at most limit entities may run; 0 means any number.
func (p *place) open(token uint64, tenure *coordination.Grant, keeper *actor.PID, limit int) {
	p.mu.Lock()
	defer p.unlock()
	p.token, p.tenure, p.held, p.keeper = token, tenure, &held{tenure}, keeper
	p.slot = core.NewSlot(p.binding.cfg.slot(limit, p.binding.pace, p.binding.room))
	p.door, p.closes, p.alone, p.armed = false, false, false, time.Time{}
	if p.binding.cfg.Remember {
		p.remember(tenure)
	}
	if p.binding.cfg.numbered {
		p.step(core.Recalled{IDs: []string{strconv.Itoa(p.n)}})
	}
}

// end asks the entities of a tenure to stop, or kills them. It reports whether the tenure exists.
func (p *place) end(token uint64, ev core.SlotEvent) bool {
	p.mu.Lock()
	if p.slot == nil || p.token != token {
		p.mu.Unlock()
		return false
	}
	p.door, p.closes = false, true
	p.step(ev)
	p.unlock()
	return true
}

// pass processes the passing of time.
func (p *place) pass() {
	p.mu.Lock()
	p.armed = time.Time{}
	if p.slot != nil {
		p.step(core.Pass{})
	}
	p.unlock()
}

// limit sets how many entities may run.
func (p *place) limit(n int) {
	p.mu.Lock()
	if p.slot != nil && !p.closes {
		p.step(core.Limit{N: n})
	}
	p.unlock()
}

func (p *place) passivate(c *cell, forget bool) {
	p.mu.Lock()
	if p.cell(c.id) == c {
		p.step(core.Passivate{ID: c.id, Run: c.run, Forget: forget})
	}
	p.unlock()
}

// terminated ends an incarnation. Unhandled messages of the slot go to the next incarnation; those
// of other senders become dead letters.
func (p *place) terminated(c *cell) {
	p.mu.Lock()
	left, dead := c.box.close()
	if c.box.failed {
		p.binding.counts.failed.Add(1)
	}
	if p.cell(c.id) == c {
		p.step(core.Terminated{ID: c.id, Run: c.run, Left: left, Failed: c.box.failed,
			Worked: c.box.worked})
	} else {
		p.after.rejected = append(p.after.rejected, left...)
	}
	p.unlock()
	for _, m := range dead {
		p.binding.deadLetter(c.name(), m)
	}
}

// step runs one step of the slot. The caller must hold the mutex.
func (p *place) step(ev core.SlotEvent) {
	_, taken := ev.(core.Take)
	for _, e := range p.effects(ev) {
		if _, ends := e.(core.End); ends { // it has a deadline
			taken = false
		}
		p.carryOut(e)
	}
	if p.closes || taken && (p.binding.cfg.Idle == 0 || !p.armed.IsZero()) {
		return
	}
	if at := p.slot.NextWake(); !at.IsZero() && (p.armed.IsZero() || at.Before(p.armed)) {
		p.armed, p.after.at = at, at
	}
}

// effects returns the effects of an event. It recovers from a panic, since the caller holds the
// mutex; a message that the step was for is returned to its sender.
func (p *place) effects(ev core.SlotEvent) (effects []core.SlotEffect) {
	defer p.guard(ev, "processing a %T", func() {
		if t, ok := ev.(core.Take); ok {
			p.after.rejected = append(p.after.rejected, t.Body)
		}
	})
	return p.slot.Step(p.binding.clock.Now(), ev)
}

// guard is deferred. It reports a panic and calls failed.
func (p *place) guard(of any, while string, failed func()) {
	if r := recover(); r != nil {
		bugs.Report(p.binding.system, p.binding.component(), fmt.Sprintf(while, of), r,
			&p.binding.counts.panics)
		failed()
	}
}

func (p *place) carryOut(e core.SlotEffect) {
	defer p.guard(e, "carrying out a %T", func() {
		if t, ok := e.(core.Push); ok {
			p.after.rejected = append(p.after.rejected, t.Body)
		}
	})
	switch e := e.(type) {
	case core.Push:
		c := p.cell(e.ID)
		if to := locates(e.Body.Value); to != nil && c.box.found() {
			p.after.located = append(p.after.located, located{to, c})
			return
		}
		c.box.post(post{message: e.Body.Value, size: e.Body.Size, from: slot})
	case core.Spawn:
		c := &cell{place: p, id: e.ID, run: e.Run, tenure: p.held}
		c.box.cell = c
		p.slot.Attach(e.ID, c)
		p.after.spawns = append(p.after.spawns, c)
	case core.End:
		if !p.closes {
			p.binding.counts.passivated.Add(1)
		}
		p.cell(e.ID).box.post(post{from: stop})
	case core.Slay:
		p.cell(e.ID).box.halt()
		if !p.closes {
			p.after.overdue = append(p.after.overdue, e.ID)
		}
	case core.Reject:
		p.after.rejected = append(p.after.rejected, e.Body)
	case core.Remember:
		p.memory.add(change{e.ID, false})
	case core.Forget:
		p.memory.add(change{e.ID, true})
	case core.Empty:
		p.after.ended = true
	}
}

// unlock releases the mutex and performs the actions that the step has left.
func (p *place) unlock() {
	do, keeper, token, grant, alone := p.after, p.keeper, p.token, p.tenure, p.alone
	p.after = after{}
	if do.ended {
		p.slot, p.tenure, p.held, p.keeper = nil, nil, nil, nil
	}
	p.mu.Unlock()
	system := p.binding.system
	for _, c := range do.spawns {
		contain.Send(system, keeper, c)
	}
	for _, id := range do.overdue {
		p.failed(&p.binding.overdue, id, func(log *slog.Logger) {
			log.Warn("entity stopped: it did not end in time", slog.Duration("limit",
				p.binding.cfg.HandOff))
		})
	}
	for _, l := range do.located {
		l.cell.locate(l.to)
	}
	for _, b := range do.rejected {
		if d, ok := b.Value.(*delivered); ok {
			d.report(false)
			continue
		}
		p.binding.refuse(b.ID, b.Value, errRejected)
	}
	switch {
	case do.ended && alone:
		contain.Send(system, keeper, finish{})
		go func() { _, _ = yield(grant) }()
	case do.ended:
		contain.Send(system, keeper, finish{})
		contain.Send(system, p.binding.control, &ended{p.n, token})
	case !do.at.IsZero():
		contain.Send(system, keeper, rearm(do.at))
	}
}

// last reports whether entities still run in a tenure. If so, it kills them and releases the lease
// when they have stopped.
func (p *place) last(token uint64) bool {
	p.mu.Lock()
	there := p.slot != nil && p.token == token
	p.alone = there
	if there {
		p.door, p.closes = false, true
		p.step(core.KillAll{})
	}
	p.unlock()
	return there
}

// len returns the number of entities.
func (p *place) len() int {
	if p.slot == nil {
		return 0
	}
	return p.slot.Len()
}

// log returns a logger that names the shard.
func (p *place) log() *slog.Logger { return p.binding.log.With(slog.Int("shard", p.n)) }

// unmade logs that an entity could not be created: the function given to New has panicked, with a
// stack, or returned nil, which is no bug of it.
func (p *place) unmade(entity string, why any, stack string) {
	const text = "entity could not be created"
	if stack == "" {
		p.failed(&p.binding.refusals, entity, func(log *slog.Logger) {
			log.Warn(text, slog.Any("reason", why))
		})
		return
	}
	p.failed(&p.binding.panics, entity, func(log *slog.Logger) {
		log.Error(text, slog.Any("reason", why), slog.String("stack", stack))
	})
}

// panicked logs that a handler has panicked, or ended its goroutine.
func (c *cell) panicked(reason, message any, stack string) {
	c.place.failed(&c.place.binding.panics, c.id, func(log *slog.Logger) {
		log.Error("entity panicked", slog.Any("reason", reason),
			slog.String("message", fmt.Sprintf("%T", message)), slog.String("stack", stack))
	})
}

// quiet is how long a line of the log is not repeated. While the lease store does not answer, each
// shard tries again and again to acquire its lease; and many entities may fail for one reason.
const quiet = 10 * time.Second

// failed calls write to log a failure of the application's code in an entity, if lines lets that
// pass.
func (p *place) failed(lines *bugs.Sparse, entity string, write func(*slog.Logger)) {
	unlogged, due := lines.Due(p.binding.clock.Now(), quiet)
	if !due {
		return
	}
	defer func() { _ = recover() }() // the log handler is the application's
	write(p.log().With(slog.String("entity", entity), slog.Int("unlogged", unlogged)))
}
