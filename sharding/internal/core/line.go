package core

import (
	"sync"
	"sync/atomic"
)

// Line is the path of the messages of this process to a shard that another member hosts. A sender
// may take it without a step of the Region. Its methods may be called by any goroutine.
//
// Invariant: the numbers of one tenure rise by one, and Flush reports the last of them, whichever
// way the messages go.
type Line struct {
	isOpen atomic.Bool // token != 0

	mu     sync.Mutex
	host   Member
	token  uint64 // tenure under which Next sends; 0: none
	flow   *flow
	queued int // messages that the Region has numbered and the caller has not sent yet

	number   uint64 // number of the last message sent
	numberOf uint64 // token of the tenure it was sent under
}

// Ticket is the permission to send one message to the host of a shard.
type Ticket struct {
	To            Member
	Token, Number uint64
	Ask           uint64 // not 0: send Sent with this number of bytes after the message
}

// Next returns the ticket of a message of this size. It returns false if the message must be passed
// to the Region as Send: no tenure is known, the credit of the host is used up, or earlier messages
// of the Region have not been sent. The caller must send the messages in the order of their
// numbers, and must not call Next while messages of this process to the shard wait in the Region or
// before it.
func (l *Line) Next(size int) (t Ticket, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == 0 || l.queued > 0 {
		return t, false
	}
	if t.Ask, ok = l.flow.spend(size, false); !ok {
		return t, false
	}
	t.To, t.Token, t.Number = l.host, l.token, l.next(l.token)
	return t, true
}

// Open reports whether Next may return a ticket.
func (l *Line) Open() bool { return l.isOpen.Load() }

// Sent must be called for each Data of the Region when it has been sent.
func (l *Line) Sent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
}

// next returns the next number. The caller must hold the mutex.
func (l *Line) next(token uint64) uint64 {
	if l.numberOf != token {
		l.number, l.numberOf = 0, token
	}
	l.number++
	return l.number
}

// queue returns the number of a message that the Region sends.
func (l *Line) queue(token uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued++
	return l.next(token)
}

func (l *Line) open(host Member, token uint64, f *flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.host, l.token, l.flow = host, token, f
	l.isOpen.Store(true)
}

// Shut prevents Next from returning tickets until the Region learns of another tenure.
func (l *Line) Shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token, l.flow = 0, nil
	l.isOpen.Store(false)
}

// last returns the number of the last message sent under a tenure.
func (l *Line) last(token uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.numberOf != token {
		return 0
	}
	return l.number
}
