package sharding

import (
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/sharding/internal/core"
)

// mailbox is the mailbox of one incarnation of an entity. It checks the tenure before each message,
// returns unhandled messages, and has no memory for messages while it is idle. It exists before the
// actor does, so messages need not wait until the actor is spawned.
type mailbox struct {
	incarnation *incarnation
	invoker     actor.MessageInvoker

	mu         sync.Mutex
	load       *load       // nil: no messages of users, and not busy
	system     *queue[any] // nil: empty
	begins     bool        // the actor gets *actor.Started next
	started    bool        // the actor has been spawned
	busy       bool        // a goroutine is processing the mailbox
	suspended  bool
	stoppedNow bool // no more user messages are handled
	closed     bool // the incarnation has ended
	failed     bool // a failure since it last handled a message
	worked     bool // it has handled a message
	leaving    bool // Proto.Actor is stopping the actor
	warm       bool // it is in the warm mailboxes of the incarnation

	// urgent is set if system is not empty, or user messages must not be handled: then the
	// processing goroutine must not handle the batch without the mutex.
	urgent atomic.Bool

	// Used only by the processing goroutine, or with the mutex while there is none.
	ending  bool // the stop of the entity is being handled, or was
	stopped bool // Proto.Actor is stopping the actor
	entered bool // the user's actor exists, and gets what follows Started
}

// load is what a mailbox holds only while it has messages, or had some lately: a million idle
// entities do without.
type load struct {
	first [1]queued // what user begins with
	user  []queued

	// Used only by the processing goroutine, or with the mutex while there is none.
	batch queue[queued] // taken from user, to be handled before it
	last  any           // message being handled; an *incomingDelivery with that of a delivery
}

func (l *load) len() int { return len(l.user) + l.batch.len() }

// queued is a message in a mailbox: from the slot, or from any other sender that knows the PID of
// the entity, such as an actor that replies to it.
type queued struct {
	message any
	size    int
	from    source
}

type source uint8

const (
	others source = iota
	slot
	stop // not a message: the entity must stop here
)

// errExit is the reason of a failure when a handler ended its goroutine.
var errExit = errors.New("sharding: the handler ended its goroutine")

// PostUserMessage implements actor.Mailbox, for messages that are not from the slot.
func (m *mailbox) PostUserMessage(message any) {
	m.incarnation.used(message)
	if !m.enqueue(queued{message: message}) {
		m.incarnation.shard.binding.deadLetter(m.incarnation.name(), message)
	}
}

// enqueue adds a message, and returns false if the incarnation has ended.
func (m *mailbox) enqueue(p queued) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.take()
	l := m.load
	if n := len(l.user); n >= few && n == cap(l.user) {
		l.user = m.incarnation.shard.binding.buffers.grow(l.user)
	}
	l.user = append(l.user, p)
	m.schedule()
	return true
}

// take makes room for messages. The caller must hold the mutex.
func (m *mailbox) take() {
	if m.load == nil {
		m.load = &load{}
		m.load.user = m.load.first[:0]
	}
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := message.(*actor.Started); ok { // no queue for the first one
		m.begins = true
		return // Start follows
	}
	m.pushSystem(message)
}

// pushSystem adds a system message. The caller must hold the mutex.
func (m *mailbox) pushSystem(message any) {
	if m.system == nil {
		m.system = &queue[any]{}
	}
	m.system.push(message)
	m.urgent.Store(true)
	m.schedule()
}

// RegisterHandlers implements actor.Mailbox. Each entity runs in a goroutine of its own. The
// invoker is the context of the actor that is being spawned; its first actor learns its incarnation
// here.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	if ctx, ok := invoker.(actor.Context); ok {
		if a, ok := ctx.Actor().(*entityActor); ok {
			a.incarnation = m.incarnation
		}
	}
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {
	m.mu.Lock()
	m.started = true
	waiting := m.unlocate()
	m.schedule()
	m.mu.Unlock()
	for _, to := range waiting {
		m.incarnation.locate(to)
	}
}

// UserMessageCount implements actor.Mailbox. It does not count messages that the processing
// goroutine has taken.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.load == nil {
		return 0
	}
	return len(m.load.user)
}

// stopNow prevents the entity from handling further messages, and stops it.
func (m *mailbox) stopNow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stoppedNow = true
	m.pushSystem(&actor.Stop{})
}

// over reports whether the entity must not begin to work.
func (m *mailbox) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.incarnation.tenure.Check() != nil {
		m.stoppedNow = true
		m.urgent.Store(true)
	}
	return m.stoppedNow
}

// fail records a failure.
func (m *mailbox) fail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = true
}

// close closes the mailbox. It returns the unhandled messages of the slot, and those of other
// senders for the dead letters.
func (m *mailbox) close() (left []core.Body, dead []any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.load == nil {
		return nil, nil
	}
	for _, p := range append(m.load.batch.rest(), m.load.user...) {
		switch p.from {
		case slot:
			left = append(left, core.Body{ID: m.incarnation.id, Value: p.message, Size: p.size})
		case others:
			dead = append(dead, p.message)
		case stop:
		}
	}
	m.load.batch, m.load.user = queue[queued]{}, nil
	return left, dead
}

func (m *mailbox) schedule() {
	if !m.busy && m.started && m.work() {
		m.busy = true
		m.take()
		go m.process()
	}
}

// work reports whether there is anything to process.
func (m *mailbox) work() bool {
	return m.begins || m.system != nil ||
		!m.suspended && !m.stoppedNow && m.load != nil && m.load.len() > 0
}

// process processes messages until none are left. If a handler panics or ends the goroutine, that
// is a failure of the actor.
func (m *mailbox) process() {
	ended := false
	defer func() {
		if ended {
			return
		}
		var reason any = errExit
		if p := recover(); p != nil {
			reason = p
		}
		m.fail()
		message := m.conclude(false)
		m.incarnation.panicked(reason, message, string(debug.Stack()))
		if m.stopped && m.broke(message) {
			return
		}
		if m.ending {
			m.stopNow() // nothing else would stop it
		}
		m.invoker.EscalateFailure(reason, message)
		go m.process()
	}()
	for m.one() {
	}
	ended = true
}

// one handles the next message, and reports whether there was one.
func (m *mailbox) one() bool {
	batch := &m.load.batch
	if !m.urgent.Load() && batch.len() > 0 && m.incarnation.tenure.Check() == nil {
		p, _ := batch.pop()
		m.handle(p)
		return true
	}
	m.mu.Lock()
	if m.begins {
		m.begins = false
		m.mu.Unlock()
		m.handleSystem(&actor.Started{})
		return true
	}
	if m.system != nil {
		message, _ := m.system.pop()
		if m.system.len() == 0 {
			m.system = nil
		}
		switch message.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			m.mu.Unlock()
			m.handleSystem(message)
			return true
		}
		m.mu.Unlock()
		return true
	}
	p, ok := queued{}, false
	if !m.suspended && !m.stoppedNow {
		if batch.len() == 0 {
			batch.items, m.load.user = m.load.user, batch.items[:0]
		}
		switch {
		case batch.len() == 0:
		case m.incarnation.tenure.Check() == nil:
			p, ok = batch.pop()
		default:
			m.stoppedNow = true // the region learns of the loss and stops the entities now
		}
	}
	m.urgent.Store(m.suspended || m.stoppedNow)
	warmer := false
	if !ok {
		m.busy = false
		warmer = m.trim()
	}
	m.mu.Unlock()
	if ok {
		m.handle(p)
	} else if warmer {
		m.incarnation.shard.binding.warm.add(m)
	}
	return ok
}

// trim gives back the memory of an idle mailbox, except for a few messages, and reports whether the
// mailbox has become warm. The caller must hold the mutex.
func (m *mailbox) trim() (warmer bool) {
	l := m.load
	if l.len() > 0 {
		return false
	}
	idle := [...][]queued{l.user, l.batch.items[:0]}
	l.user, l.batch = nil, queue[queued]{}
	for _, b := range idle {
		if cap(b) > few {
			m.incarnation.shard.binding.buffers.put(b)
		} else if l.user == nil {
			l.user = b
		}
	}
	warmer, m.warm = !m.warm, true
	return warmer
}

// cool lets a mailbox that is not warm any more have no memory while it is idle.
func (m *mailbox) cool() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warm = false
	if !m.busy && m.load != nil && m.load.len() == 0 {
		m.load = nil
	}
}

// few and many are numbers of messages. A warm mailbox keeps memory for few, and buffers keeps
// memory for at most many in one piece.
const (
	few  = 64
	many = 1 << 14
)

// warm holds the mailboxes that became idle last. They keep a little memory, since what was busy
// often is again. The zero value is empty.
type warm struct {
	mu    sync.Mutex
	boxes [1 << 12]*mailbox
	next  int
}

// add adds a mailbox in place of the oldest.
func (w *warm) add(m *mailbox) {
	w.mu.Lock()
	at := &w.boxes[w.next%len(w.boxes)]
	oldest := *at
	*at = m
	w.next++
	w.mu.Unlock()
	if oldest != nil {
		oldest.cool()
	}
}

// buffers keeps the memory of mailboxes that became empty for others that fill, until the garbage
// collector takes it. Otherwise a mailbox that is empty again and again, since the entity is faster
// than its senders, would allocate for each message. The zero value is empty.
type buffers struct{ pool sync.Pool }

// grow returns a larger buffer with the same messages, or the same one if there is none.
func (b *buffers) grow(items []queued) []queued {
	if larger, ok := b.pool.Get().(*[]queued); ok && cap(*larger) > len(items) {
		return append(*larger, items...)
	}
	return items
}

// put keeps an empty buffer.
func (b *buffers) put(empty []queued) {
	if cap(empty) <= many {
		b.pool.Put(&empty)
	}
}

// handleSystem drops the restart of an actor that is stopping: Proto.Actor would revive it.
func (m *mailbox) handleSystem(message any) {
	switch message.(type) {
	case *actor.Stop:
		m.stopped = true
		m.mu.Lock()
		m.leaving = true
		m.mu.Unlock()
	case *actor.Restart:
		if m.stopped {
			return
		}
	}
	m.load.last = message
	m.invoker.InvokeSystemMessage(message)
	m.load.last = nil
	if _, ok := message.(*actor.Started); ok && m.incarnation.shard.binding.blueprint != nil {
		m.succeed() // its messages need not come from the slot
	}
}

// succeed records that the incarnation works.
func (m *mailbox) succeed() {
	m.mu.Lock()
	m.worked, m.failed = true, false
	m.mu.Unlock()
}

func (m *mailbox) handle(p queued) {
	if p.from == stop {
		m.ending = true
		if msg := m.incarnation.shard.binding.cfg.StopMessage; msg != nil {
			p.message = msg
		} else {
			m.PostSystemMessage(&actor.Stop{})
			return
		}
	}
	if to := locates(p.message); to != nil {
		m.incarnation.locate(to)
		return
	}
	m.load.last = p.message
	if d, ok := p.message.(*incomingDelivery); ok {
		p.message = d.value
	}
	m.invoker.InvokeUserMessage(p.message)
	m.conclude(true)
	if p.from == slot && (!m.worked || m.failed) {
		m.succeed()
	}
}

// conclude returns the message whose handler has ended, and reports the end of a delivery. If the
// tenure has ended meanwhile, another incarnation may be alive, and targets reject the effects of
// this one: then the delivery counts as not handled.
func (m *mailbox) conclude(returned bool) (message any) {
	message, m.load.last = m.load.last, nil
	if d, ok := message.(*incomingDelivery); ok {
		d.report(returned && m.incarnation.tenure.Check() == nil)
		return d.value
	}
	return message
}

// handling returns the message being handled, or nil.
func (m *mailbox) handling() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.load == nil {
		return nil // not called by a handler
	}
	return m.load.last
}

// queue is a FIFO queue. The zero value is empty.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }

func (q *queue[T]) pop() (item T, ok bool) {
	if q.head == len(q.items) {
		return item, false
	}
	var zero T
	item, q.items[q.head] = q.items[q.head], zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 64 && q.head >= len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return item, true
}

// rest returns the items, in order. It aliases the queue.
func (q *queue[T]) rest() []T { return q.items[q.head:] }
