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

// hostedShard holds one shard on this member while it is active here. The messages of this process
// enter it in the goroutine of the sender. User code never runs under its mutex.
type hostedShard struct {
	binding *binding
	n       int
	away    atomic.Bool // messages of this process go to another member, as far as is known

	mu     sync.Mutex
	in     lane.In
	out    lane.Out
	link   *link // last used
	local  bool  // messages of this process enter here, if none waits
	shut   bool  // no further message of this process is accepted
	status ShardStatus

	token      uint64
	tenure     *coordination.Grant
	held       *held      // tenure, for incarnations
	slot       *core.Slot // nil: no tenure
	supervisor *actor.PID
	closes     bool      // the entities were asked to stop
	alone      bool      // the shard itself must release the lease
	memory     *memory   // nil: no entities are remembered
	armed      time.Time // when the supervisor will be woken; zero: never

	after after // actions to perform without the mutex
}

// after holds the actions that a step of the slot has left to perform.
type after struct {
	spawns   []*incarnation
	rejected []core.Body
	overdue  []string // entities that did not stop
	located  []located
	ended    bool
	at       time.Time
}

// incarnation is one incarnation of an entity.
type incarnation struct {
	shard  *hostedShard
	id     string
	run    uint64
	tenure *held
	box    mailbox
}

// held is the tenure of a shard. It is behind a pointer because that is half the size, in each of
// a million incarnations.
type held struct{ coordination.Tenure }

func (in *incarnation) entity() Entity {
	return Entity{Type: in.shard.binding.cfg.Type, ID: in.id, Shard: in.shard.n,
		Tenure: in.tenure.Tenure}
}

// name returns the name of the actor below its supervisor; it is different for each incarnation.
func (in *incarnation) name() string { return in.id + "$" + strconv.FormatUint(in.run, 10) }

// path returns the id of the actor in its system.
func (in *incarnation) path(supervisor *actor.PID) string {
	return supervisor.Id + "/" + in.id + "$" + strconv.FormatUint(in.run, 10)
}

// incarnationOf returns the incarnation of an actor below a supervisor, by its name, or nil if it
// has terminated.
func (s *hostedShard) incarnationOf(self, supervisor *actor.PID) *incarnation {
	name := strings.TrimPrefix(self.Id, supervisor.Id+"/")
	at := strings.LastIndexByte(name, '$')
	if at < 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.incarnation(name[:at]); in != nil && in.name() == name {
		return in
	}
	return nil
}

// incarnation returns an incarnation that has not terminated, or nil. The caller must hold the
// mutex.
func (s *hostedShard) incarnation(id string) *incarnation {
	if s.slot == nil {
		return nil
	}
	in, _ := s.slot.Incarnation(id).(*incarnation)
	return in
}

// send accepts a message of this process: it goes to its entity or to the member that hosts the
// shard, in the goroutine of the sender, or waits for the control actor.
func (s *hostedShard) send(id string, value any, c *call) error {
	if s.away.Load() && s.ship(id, value, c) {
		return nil
	}
	s.mu.Lock()
	switch {
	case s.shut:
		s.mu.Unlock()
		return ErrClosed
	case !s.local || s.out.Len() > 0:
		s.mu.Unlock()
		b := core.Body{ID: id, Value: &outgoing{value: value, call: c}, Size: sizeOf(value)}
		return s.wait(b)
	}
	if b := (core.Body{ID: id, Value: value}); s.push(b) {
		s.mu.Unlock()
	} else {
		s.step(core.Take{Body: b})
		s.unlock()
	}
	return nil
}

// wait lets a message wait.
func (s *hostedShard) wait(b core.Body) error {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return ErrClosed
	}
	first, ok := s.out.Wait(b)
	s.mu.Unlock()
	if !ok {
		return ErrBufferFull
	}
	if first {
		contain.Send(s.binding.system, s.binding.control, &waits{s.n})
	}
	return nil
}

// ship sends a message to the member that hosts the shard. It returns false if earlier messages
// wait, or this one must.
func (s *hostedShard) ship(id string, value any, c *call) (done bool) {
	err := pack(id, value, s.binding.view.Load().Self.Address, func(m *wireMessage) {
		s.mu.Lock()
		defer s.mu.Unlock()
		done = s.out.Len() == 0 && !s.shut && s.forward(m, c)
	})
	if err == nil {
		return done
	}
	s.mu.Lock()
	done = s.out.Away() && s.out.Len() == 0 && !s.shut
	s.mu.Unlock()
	if done {
		s.binding.refuse(id, &outgoing{value: value, call: c}, err)
	}
	return done
}

// forward passes a message to the link to the host, with its number, or returns false if it must
// wait. The caller must hold the mutex.
func (s *hostedShard) forward(m *wireMessage, c *call) bool {
	t, ok := s.out.Next(len(m.payload))
	if !ok {
		return false
	}
	m.shard, m.token, m.number = s.n, t.Token, t.Number
	if s.link == nil || s.link.to != t.To || !s.link.add(m, t.Ask) {
		s.link = s.binding.link(t.To)
		s.link.add(m, t.Ask)
	}
	s.binding.calls.Sent(c, core.Tenure{Shard: s.n, Token: t.Token})
	return true
}

// enter passes the messages of this process to the tenure here from now on, first those that
// waited.
func (s *hostedShard) enter(e core.Open) {
	s.mu.Lock()
	s.out.Open(e.Host, e.Token, nil)
	s.away.Store(false)
	if s.slot != nil && s.token == e.Token && !s.closes {
		for _, b := range s.out.Withdraw() {
			b.Value = b.Value.(*outgoing).value
			s.hand(e.Token, b)
		}
		s.local = true
	}
	s.unlock()
}

// drain sends what has waited to the member that hosts the shard. It returns false if some must
// still wait. Only the control actor calls it.
func (s *hostedShard) drain(e core.Open, f *lane.Flow) bool {
	s.mu.Lock()
	s.out.Open(e.Host, e.Token, f)
	s.away.Store(true)
	for {
		b, ok := s.out.First()
		s.mu.Unlock()
		if !ok {
			return true
		}
		sent, body := false, b.Value.(*outgoing)
		err := pack(b.ID, body.value, s.binding.view.Load().Self.Address, func(m *wireMessage) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if sent = s.forward(m, body.call); sent {
				s.out.Pop()
			}
		})
		if err == nil && !sent {
			return false
		}
		s.mu.Lock()
		if err != nil {
			s.out.Pop()
			s.mu.Unlock()
			s.binding.refuse(b.ID, b.Value, err)
			s.mu.Lock()
		}
	}
}

// shutOut lets the messages of this process wait, and reports whether some do.
func (s *hostedShard) shutOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Shut()
	s.away.Store(false)
	return s.out.Len() > 0
}

// waiting returns how many messages of this process wait.
func (s *hostedShard) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Len()
}

// withdraw removes and returns the messages of this process that wait.
func (s *hostedShard) withdraw() []core.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Withdraw()
}

// push passes a message to an entity that is running, the usual case, and reports whether it did.
// The caller must hold the mutex.
func (s *hostedShard) push(b core.Body) bool {
	if locates(b.Value) != nil {
		return false // a step answers it, without the mutex
	}
	now := time.Time{}
	if s.binding.cfg.Idle > 0 {
		now = s.binding.clock.Now()
	}
	c, ok := s.slot.Direct(now, b.ID)
	if !ok {
		return false
	}
	c.(*incarnation).box.enqueue(queued{message: b.Value, size: b.Size, from: slot})
	return true
}

// deliver accepts a delivery for a tenure.
func (s *hostedShard) deliver(token uint64, b core.Body) {
	s.mu.Lock()
	s.hand(token, b)
	s.unlock()
}

// hand passes a message to its entity. The caller must hold the mutex.
func (s *hostedShard) hand(token uint64, b core.Body) {
	switch {
	case s.slot == nil || s.token != token:
		s.after.rejected = append(s.after.rejected, b)
	case !s.push(b):
		s.step(core.Take{Body: b})
	}
}

// open begins a tenure in which at most limit entities may run; 0 means any number.
func (s *hostedShard) open(token uint64, tenure *coordination.Grant, supervisor *actor.PID,
	limit int) {
	s.mu.Lock()
	defer s.unlock()
	s.token, s.tenure, s.held, s.supervisor = token, tenure, &held{tenure}, supervisor
	s.slot = core.NewSlot(s.binding.cfg.slot(limit, s.binding.pace, s.binding.room))
	s.local, s.closes, s.alone, s.armed = false, false, false, time.Time{}
	if s.binding.cfg.Remember {
		s.remember(tenure)
	}
	if s.binding.cfg.numbered {
		s.step(core.Recalled{IDs: []string{strconv.Itoa(s.n)}})
	}
}

// stop asks the entities of a tenure to stop, or stops them now. It reports whether the tenure
// exists.
func (s *hostedShard) stop(token uint64, ev core.SlotEvent) bool {
	s.mu.Lock()
	if s.slot == nil || s.token != token {
		s.mu.Unlock()
		return false
	}
	s.local, s.closes = false, true
	s.step(ev)
	s.unlock()
	return true
}

// pass processes the passing of time.
func (s *hostedShard) pass() {
	s.mu.Lock()
	s.armed = time.Time{}
	if s.slot != nil {
		s.step(core.Pass{})
	}
	s.unlock()
}

// limit sets how many entities may run.
func (s *hostedShard) limit(n int) {
	s.mu.Lock()
	if s.slot != nil && !s.closes {
		s.step(core.Limit{N: n})
	}
	s.unlock()
}

func (s *hostedShard) passivate(in *incarnation, forget bool) {
	s.mu.Lock()
	if s.incarnation(in.id) == in {
		s.step(core.Passivate{ID: in.id, Run: in.run, Forget: forget})
	}
	s.unlock()
}

// terminated ends an incarnation. Unhandled messages of the slot go to the next incarnation; those
// of other senders become dead letters.
func (s *hostedShard) terminated(in *incarnation) {
	s.mu.Lock()
	left, dead := in.box.close()
	if in.box.failed {
		s.binding.counts.failed.Add(1)
	}
	if s.incarnation(in.id) == in {
		s.step(core.Terminated{ID: in.id, Run: in.run, Left: left, Failed: in.box.failed,
			Worked: in.box.worked})
	} else {
		s.after.rejected = append(s.after.rejected, left...)
	}
	s.unlock()
	for _, m := range dead {
		s.binding.deadLetter(in.name(), m)
	}
}

// step runs one step of the slot. The caller must hold the mutex.
func (s *hostedShard) step(ev core.SlotEvent) {
	_, taken := ev.(core.Take)
	for _, e := range s.effects(ev) {
		if _, ends := e.(core.StopEntity); ends { // it has a deadline
			taken = false
		}
		s.carryOut(e)
	}
	if s.closes || taken && (s.binding.cfg.Idle == 0 || !s.armed.IsZero()) {
		return
	}
	if at := s.slot.NextWake(); !at.IsZero() && (s.armed.IsZero() || at.Before(s.armed)) {
		s.armed, s.after.at = at, at
	}
}

// effects returns the effects of an event. It recovers from a panic, since the caller holds the
// mutex; a message that the step was for is returned to its sender.
func (s *hostedShard) effects(ev core.SlotEvent) (effects []core.SlotEffect) {
	defer s.guard(ev, "processing a %T", func() {
		if t, ok := ev.(core.Take); ok {
			s.after.rejected = append(s.after.rejected, t.Body)
		}
	})
	return s.slot.Step(s.binding.clock.Now(), ev)
}

// guard is deferred. It reports a panic and calls failed.
func (s *hostedShard) guard(of any, while string, failed func()) {
	if r := recover(); r != nil {
		bugs.Report(s.binding.system, s.binding.component(), fmt.Sprintf(while, of), r,
			&s.binding.counts.panics)
		failed()
	}
}

func (s *hostedShard) carryOut(e core.SlotEffect) {
	defer s.guard(e, "carrying out a %T", func() {
		if t, ok := e.(core.Push); ok {
			s.after.rejected = append(s.after.rejected, t.Body)
		}
	})
	switch e := e.(type) {
	case core.Push:
		in := s.incarnation(e.ID)
		if to := locates(e.Body.Value); to != nil && in.box.found() {
			s.after.located = append(s.after.located, located{to, in})
			return
		}
		in.box.enqueue(queued{message: e.Body.Value, size: e.Body.Size, from: slot})
	case core.Spawn:
		in := &incarnation{shard: s, id: e.ID, run: e.Run, tenure: s.held}
		in.box.incarnation = in
		s.slot.Attach(e.ID, in)
		s.after.spawns = append(s.after.spawns, in)
	case core.StopEntity:
		if !s.closes {
			s.binding.counts.passivated.Add(1)
		}
		s.incarnation(e.ID).box.enqueue(queued{from: stop})
	case core.StopEntityNow:
		s.incarnation(e.ID).box.stopNow()
		if !s.closes {
			s.after.overdue = append(s.after.overdue, e.ID)
		}
	case core.Reject:
		s.after.rejected = append(s.after.rejected, e.Body)
	case core.Remember:
		s.memory.add(change{id: e.ID})
	case core.Forget:
		s.memory.add(change{id: e.ID, forget: true})
	case core.Empty:
		s.after.ended = true
	}
}

// unlock releases the mutex and performs the actions that the step has left.
func (s *hostedShard) unlock() {
	do, supervisor, token, grant, alone := s.after, s.supervisor, s.token, s.tenure, s.alone
	s.after = after{}
	if do.ended {
		s.slot, s.tenure, s.held, s.supervisor = nil, nil, nil, nil
	}
	s.mu.Unlock()
	system := s.binding.system
	for _, in := range do.spawns {
		contain.Send(system, supervisor, in)
	}
	for _, id := range do.overdue {
		s.failed(&s.binding.overdue, id, func(log *slog.Logger) {
			log.Warn("entity stopped: it did not end in time", slog.Duration("limit",
				s.binding.cfg.HandOff))
		})
	}
	for _, l := range do.located {
		l.incarnation.locate(l.to)
	}
	for _, b := range do.rejected {
		if d, ok := b.Value.(*incomingDelivery); ok {
			d.report(false)
			continue
		}
		s.binding.refuse(b.ID, b.Value, errRejected)
	}
	switch {
	case do.ended && alone:
		contain.Send(system, supervisor, finish{})
		go func() { _, _ = yield(grant) }()
	case do.ended:
		contain.Send(system, supervisor, finish{})
		contain.Send(system, s.binding.control, &ended{s.n, token})
	case !do.at.IsZero():
		contain.Send(system, supervisor, rearm(do.at))
	}
}

// last reports whether entities still run in a tenure. If so, it stops them now and releases the
// lease when they have stopped.
func (s *hostedShard) last(token uint64) bool {
	s.mu.Lock()
	there := s.slot != nil && s.token == token
	s.alone = there
	if there {
		s.local, s.closes = false, true
		s.step(core.StopAllNow{})
	}
	s.unlock()
	return there
}

// len returns the number of entities.
func (s *hostedShard) len() int {
	if s.slot == nil {
		return 0
	}
	return s.slot.Len()
}

// log returns a logger that names the shard.
func (s *hostedShard) log() *slog.Logger { return s.binding.log.With(slog.Int("shard", s.n)) }

// unmade logs that an entity could not be created: the function given to New has panicked, with a
// stack, or returned nil, which is no bug of it.
func (s *hostedShard) unmade(entity string, why any, stack string) {
	const text = "entity could not be created"
	if stack == "" {
		s.failed(&s.binding.refusals, entity, func(log *slog.Logger) {
			log.Warn(text, slog.Any("reason", why))
		})
		return
	}
	s.failed(&s.binding.panics, entity, func(log *slog.Logger) {
		log.Error(text, slog.Any("reason", why), slog.String("stack", stack))
	})
}

// panicked logs that a handler has panicked, or ended its goroutine.
func (in *incarnation) panicked(reason, message any, stack string) {
	in.shard.failed(&in.shard.binding.panics, in.id, func(log *slog.Logger) {
		log.Error("entity panicked", slog.Any("reason", reason),
			slog.String("message", fmt.Sprintf("%T", message)), slog.String("stack", stack))
	})
}

// quiet is how long a line of the log is not repeated. While the lease store does not answer, each
// shard tries again and again to acquire its lease; and many entities may fail for one reason.
const quiet = 10 * time.Second

// failed calls write to log a failure of the application's code in an entity, if lines lets that
// pass.
func (s *hostedShard) failed(lines *bugs.Sparse, entity string, write func(*slog.Logger)) {
	unlogged, due := lines.Due(s.binding.clock.Now(), quiet)
	if !due {
		return
	}
	defer func() { _ = recover() }() // the log handler is the application's
	write(s.log().With(slog.String("entity", entity), slog.Int("unlogged", unlogged)))
}
