package sharding

import (
	"errors"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/sharding/internal/core"
)

// mailbox is that of one incarnation of an entity. It checks the tenure before each message, gives back what was not
// handled, and owns next to nothing while it is empty. It exists before the actor does, so that messages need not wait for
// the actor to be spawned.
type mailbox struct {
	cell       *cell
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher

	mu        sync.Mutex
	user      queue[post]
	system    queue[any]
	started   bool // the actor is there
	busy      bool // a goroutine works on it
	suspended bool
	halted    bool // no message of a user is handled any more
	closed    bool // the incarnation has ended
	failed    bool // since it last handled a message
	worked    bool // it has handled one

	// For the goroutine.
	last    any  // message under way
	ending  bool // a stop message of the user is, or was
	stopped bool // Proto.Actor stops the actor
}

// post is a message in a mailbox: from the slot, or from anybody else who knows the PID of the entity, such as an actor
// that answers it.
type post struct {
	message any
	size    int
	from    source
}

type source uint8

const (
	others source = iota
	slot
	stop // not a message: the entity is to end here
)

// errExit is the reason of a failure when a handler has ended its goroutine.
var errExit = errors.New("sharding: the handler ended its goroutine")

// PostUserMessage implements actor.Mailbox, for messages that are not from the slot.
func (m *mailbox) PostUserMessage(message any) {
	if !m.post(post{message: message}) {
		m.cell.place.life.deadLetter(m.cell.name(), message)
	}
}

// post reports whether the incarnation has not ended.
func (m *mailbox) post(p post) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.user.push(p)
	m.schedule()
	return true
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.system.push(message)
	m.schedule()
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = true
	m.schedule()
}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.len()
}

// halt lets the entity handle nothing more, and stops it.
func (m *mailbox) halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halted = true
	m.system.push(&actor.Stop{})
	m.schedule()
}

// over tells that the entity must not begin to work.
func (m *mailbox) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halted = m.halted || m.cell.tenure.Check() != nil
	return m.halted
}

// fail notes a failure.
func (m *mailbox) fail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = true
}

// close ends the mailbox and returns what of the slot was not handled. What others have sent is returned for the dead
// letters.
func (m *mailbox) close() (left []core.Body, dead []any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for p, ok := m.user.pop(); ok; p, ok = m.user.pop() {
		switch p.from {
		case slot:
			left = append(left, core.Body{ID: m.cell.id, Value: p.message, Size: p.size})
		case others:
			dead = append(dead, p.message)
		case stop:
		}
	}
	return left, dead
}

func (m *mailbox) schedule() {
	if !m.busy && m.started && m.work() {
		m.busy = true
		m.dispatcher.Schedule(m.process)
	}
}

// work tells whether there is anything to do.
func (m *mailbox) work() bool {
	return m.system.len() > 0 || !m.suspended && !m.halted && m.user.len() > 0
}

// process works until nothing is left. A panic, or the end of the goroutine, is a failure of the actor.
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
		if m.ending {
			m.halt() // nothing else would end it
		}
		m.invoker.EscalateFailure(reason, m.last)
		m.dispatcher.Schedule(m.process)
	}()
	for m.one() {
	}
	ended = true
}

// one handles the next message, and reports whether there was one.
func (m *mailbox) one() bool {
	m.mu.Lock()
	if message, ok := m.system.pop(); ok {
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
	p, ok := post{}, false
	if !m.suspended && !m.halted && m.user.len() > 0 {
		if m.cell.tenure.Check() == nil {
			p, ok = m.user.pop()
		} else {
			m.halted = true // the region is told of the loss, and kills
		}
	}
	if !ok {
		m.busy = false
	}
	m.mu.Unlock()
	if ok {
		m.handle(p)
	}
	return ok
}

// handleSystem leaves out a restart of an actor that stops: Proto.Actor would bring it back.
func (m *mailbox) handleSystem(message any) {
	switch message.(type) {
	case *actor.Stop:
		m.stopped = true
	case *actor.Restart:
		if m.stopped {
			return
		}
	}
	m.last = message
	m.invoker.InvokeSystemMessage(message)
	m.last = nil
}

func (m *mailbox) handle(p post) {
	if p.from == stop {
		m.ending = true
		if msg := m.cell.place.life.cfg.StopMessage; msg != nil {
			p.message = msg
		} else {
			m.PostSystemMessage(&actor.Stop{})
			return
		}
	}
	m.last = p.message
	m.invoker.InvokeUserMessage(p.message)
	m.last = nil
	if p.from == slot && (!m.worked || m.failed) {
		m.mu.Lock()
		m.worked, m.failed = true, false
		m.mu.Unlock()
	}
}

// queue is first in, first out. The zero value is empty.
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
		if cap(q.items) > 64 {
			q.items = nil
		}
	case q.head >= 64 && q.head >= len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return item, true
}
