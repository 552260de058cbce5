// Package early provides the mailbox for an actor with a well-known name.
//
// Proto.Actor registers the name of an actor before its mailbox has a dispatcher. A message that
// arrives in between makes the delivering goroutine panic. If the panic is recovered, the mailbox
// counts as running but never runs.
package early

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Mailbox gives an actor an unbounded mailbox that holds back messages, in order, until the actor
// has been started.
func Mailbox() actor.PropsOption { return MailboxAt(new(actor.Mailbox)) }

// MailboxAt is Mailbox for props of which one actor is spawned. It stores the mailbox at m before
// the actor starts.
func MailboxAt(m *actor.Mailbox) actor.PropsOption {
	produce := actor.Unbounded()
	return actor.WithMailbox(func() actor.Mailbox {
		*m = &box{Mailbox: produce()}
		return *m
	})
}

type box struct {
	actor.Mailbox
	open atomic.Bool // the mailbox has been started; set under mu

	mu struct {
		sync.Mutex
		system, user []any // held messages
	}
}

// PostUserMessage implements actor.Mailbox.
func (m *box) PostUserMessage(message any) {
	if !m.hold(&m.mu.user, message) {
		m.Mailbox.PostUserMessage(message)
	}
}

// PostSystemMessage implements actor.Mailbox. The spawner sends Started right before Start, and it
// is handled first.
func (m *box) PostSystemMessage(message any) {
	if _, first := message.(*actor.Started); first || !m.hold(&m.mu.system, message) {
		m.Mailbox.PostSystemMessage(message)
	}
}

// hold holds a message if the mailbox has not been started, and reports whether it did.
func (m *box) hold(to *[]any, message any) bool {
	if m.open.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open.Load() {
		return false
	}
	*to = append(*to, message)
	return true
}

// Start implements actor.Mailbox. It releases the held messages. The spawner calls it when the
// mailbox can run.
func (m *box) Start() {
	m.Mailbox.Start()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.mu.system {
		m.Mailbox.PostSystemMessage(message)
	}
	for _, message := range m.mu.user {
		m.Mailbox.PostUserMessage(message)
	}
	m.mu.system, m.mu.user = nil, nil
	m.open.Store(true)
}
