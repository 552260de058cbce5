package stash

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/stash"
)

// Stash is a bounded queue of messages with their senders and headers. It belongs to one actor and
// is not safe for concurrent use. The zero value has limit 0 and rejects every message; use New.
type Stash struct{ kept stash.Stash }

// New returns an empty stash that holds at most limit messages. Memory is allocated as needed.
func New(limit int) *Stash { return &Stash{*stash.New(limit)} }

// Push appends the message that ctx is handling, and returns false when the stash is full. Use it
// for messages of the application only: a lifecycle message such as Started is not for a later
// time.
func (s *Stash) Push(ctx actor.Context) bool { return s.kept.PushContext(ctx) }

// Replay removes the messages, oldest first, and calls the actor's Receive with each, before it
// returns. Message, Sender and Respond work as they did when the message arrived; receiver
// middleware does not see the message again. A message that Receive pushes again stays for the next
// Replay.
//
// Call Replay last in a handler: when it returns, ctx has no message and no sender. If Receive
// panics, its message is lost and the later ones stay in the stash. If Receive stops the actor,
// Replay continues with the next message unless Receive also calls Discard.
func (s *Stash) Replay(ctx actor.Context) { s.kept.Replay(ctx) }

// Discard removes all messages, sends them to the dead letters, and returns their number. Their
// senders get Proto.Actor's DeadLetterResponse.
func (s *Stash) Discard(ctx actor.Context) int { return s.kept.Discard(ctx) }
