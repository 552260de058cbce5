// Package stash keeps messages with their senders and headers, until an actor is ready for them or
// knows where they go. Package coordination/stash is the part of it for users.
package stash

import (
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
)

// Entry is a kept message. Header is nil if the message had none; it must not be
// modified after Push.
type Entry struct {
	Message any
	Sender  *actor.PID
	Header  map[string]string
}

// Envelope returns the entry in the form in which it can be forwarded with its sender and header.
func (e Entry) Envelope() *actor.MessageEnvelope {
	return &actor.MessageEnvelope{Header: e.Header, Message: e.Message, Sender: e.Sender}
}

// Of returns the message that an actor is handling as an entry. It does not retain ctx.
func Of(ctx actor.Context) Entry {
	e := Entry{Message: ctx.Message(), Sender: ctx.Sender()}
	if h := ctx.MessageHeader(); h != nil && h.Length() > 0 {
		e.Header = h.ToMap()
	}
	return e
}

// Stash is a bounded queue. It belongs to one actor and is not safe for concurrent use. The zero
// value has limit 0 and rejects every entry; use New.
//
// Invariant: entries[head:] are the entries held, oldest first; len(entries)-head <= limit.
type Stash struct {
	limit   int
	entries []Entry
	head    int
	dropped uint64
}

// New returns an empty stash that holds at most limit entries. Memory is allocated as needed.
func New(limit int) *Stash { return &Stash{limit: max(limit, 0)} }

// Push appends e. It returns false, and counts the entry as dropped, when the stash is full.
func (s *Stash) Push(e Entry) bool {
	if s.Len() >= s.limit {
		s.dropped++
		return false
	}
	if s.head > 0 && len(s.entries) == cap(s.entries) {
		n := copy(s.entries, s.entries[s.head:])
		clear(s.entries[n:])
		s.entries, s.head = s.entries[:n], 0
	}
	s.entries = append(s.entries, e)
	return true
}

// PushContext appends the message that ctx is handling, as Push does. Use it for messages of the
// application only: a lifecycle message such as Started is not for a later time.
func (s *Stash) PushContext(ctx actor.Context) bool { return s.Push(Of(ctx)) }

// Len returns the number of entries held.
func (s *Stash) Len() int { return len(s.entries) - s.head }

// Dropped returns the number of entries rejected since New.
func (s *Stash) Dropped() uint64 { return s.dropped }

// Drain removes the entries one by one, oldest first, each just before it is yielded. It stops
// after as many entries as were held when the iteration began. Entries that the loop pushes back
// stay in the stash, after those not yet removed, so that the loop terminates. Breaking out of the
// loop leaves the rest.
func (s *Stash) Drain() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for n := s.Len(); n > 0 && s.Len() > 0; n-- {
			if !yield(s.pop()) {
				return
			}
		}
	}
}

// Replay removes the entries, oldest first, and calls the actor's Receive with each, before it
// returns. Message, Sender and Respond work as they did when the message arrived; receiver
// middleware does not see the message again. A message that Receive pushes again stays for the next
// Replay.
//
// Call Replay last in a handler: when it returns, ctx has no message and no sender. If Receive
// panics, its message is lost and the later entries stay in the stash. If Receive stops the actor,
// Replay continues with the next entry unless Receive also calls Discard.
func (s *Stash) Replay(ctx actor.Context) {
	for e := range s.Drain() {
		ctx.Receive(e.Envelope())
	}
}

// Discard removes all entries, sends them to the dead letters, and returns their number. Their
// senders get Proto.Actor's DeadLetterResponse. The entries do not count as dropped.
func (s *Stash) Discard(ctx actor.Context) int {
	n := s.Len()
	for e := range s.Drain() {
		contain.DeadLetter(ctx.ActorSystem(), ctx.Self(), e.Envelope())
	}
	return n
}

func (s *Stash) pop() Entry {
	e := s.entries[s.head]
	s.entries[s.head] = Entry{}
	s.head++
	if s.head == len(s.entries) {
		s.entries, s.head = s.entries[:0], 0
	}
	return e
}
