// Package early makes the mailbox of an actor under a name that other processes know.
//
// Proto.Actor registers the name of an actor before its mailbox has a dispatcher. A message that comes in between ends the
// goroutine that brings it in a panic; where that is caught, the mailbox counts as running and never runs.
package early

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Mailbox gives an actor an unbounded mailbox that holds back what comes before the actor has been started, in order.
func Mailbox() actor.PropsOption {
	produce := actor.Unbounded()
	return actor.WithMailbox(func() actor.Mailbox { return &box{Mailbox: produce()} })
}

type box struct {
	actor.Mailbox
	open atomic.Bool // the mailbox has been started; set under mu

	mu struct {
		sync.Mutex
		system, user []any // that have come before
	}
}

// PostUserMessage implements actor.Mailbox.
func (m *box) PostUserMessage(message any) {
	if !m.hold(&m.mu.user, message) {
		m.Mailbox.PostUserMessage(message)
	}
}

// PostSystemMessage implements actor.Mailbox. Started comes from the spawner, right before Start, and is handled first.
func (m *box) PostSystemMessage(message any) {
	if _, first := message.(*actor.Started); first || !m.hold(&m.mu.system, message) {
		m.Mailbox.PostSystemMessage(message)
	}
}

// hold appends a message to those that wait, and reports whether it has.
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

// Start implements actor.Mailbox: it lets through what has waited. The spawner calls it when the mailbox can run.
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
