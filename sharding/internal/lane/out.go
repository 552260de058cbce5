package lane

import (
	"sync/atomic"

	"github.com/concord-go/concord/sharding/internal/core"
)

// Out is the way of the messages of this process to one shard. A message passes at once if the
// shard has an announced tenure and no other message waits here; else it waits. The control actor
// takes what waits, in order. The zero value is shut, and has no room.
//
// Invariant: the numbers of one tenure rise by one, and Last reports the last of them, whichever
// way the messages go.
type Out struct {
	room    *Room
	to      core.Member
	token   uint64 // tenure under which Next sends; 0: none
	flow    *Flow
	waiting []core.Body
	head    int
	bytes   int // of waiting

	number   uint64 // number of the last message sent
	numberOf uint64 // token of the tenure it was sent under
}

// NewOut returns a way that is shut. All ways of a region share the room.
func NewOut(room *Room) Out { return Out{room: room} }

// Ticket is the permission to send one message to the host of a shard.
type Ticket struct {
	To            core.Member
	Token, Number uint64
	Ask           uint64 // not 0: ask the host to confirm this number of bytes after the message
}

// Next returns the ticket of a message of this size, or false if no tenure of another member is
// known or the credit of its host is used up. The caller must send the messages in the order of
// their numbers. A message that is not a delivery must be the first that waits, or none may wait.
func (o *Out) Next(size int) (t Ticket, ok bool) {
	if o.token == 0 || o.flow == nil {
		return t, false
	}
	if t.Ask, ok = o.flow.spend(size); !ok {
		return t, false
	}
	if o.numberOf != o.token {
		o.number, o.numberOf = 0, o.token
	}
	o.number++
	t.To, t.Token, t.Number = o.to, o.token, o.number
	return t, true
}

// Open announces a tenure. The flow is nil if its host is this member.
func (o *Out) Open(host core.Member, token uint64, f *Flow) {
	o.to, o.token, o.flow = host, token, f
}

// Shut prevents Next from returning tickets until another tenure is announced.
func (o *Out) Shut() { o.token, o.flow = 0, nil }

// Away reports whether the tenure of another member is known.
func (o *Out) Away() bool { return o.token != 0 && o.flow != nil }

// Token returns the token of the known tenure, or 0.
func (o *Out) Token() uint64 { return o.token }

// Last returns the number of the last message sent under a tenure.
func (o *Out) Last(token uint64) uint64 {
	if o.numberOf != token {
		return 0
	}
	return o.number
}

// Wait lets a message wait. It returns false if there is no room: the newest are refused, since
// refusing the oldest would break the order seen by their sender. first reports whether no other
// waits: then the region must be told.
func (o *Out) Wait(b core.Body) (first, ok bool) {
	if !o.room.take(o, b.Size) {
		return false, false
	}
	o.waiting = append(o.waiting, b)
	o.bytes += b.Size
	return o.Len() == 1, true
}

// Len returns how many messages wait.
func (o *Out) Len() int { return len(o.waiting) - o.head }

// First returns the message that has waited longest.
func (o *Out) First() (b core.Body, ok bool) {
	if o.Len() == 0 {
		return b, false
	}
	return o.waiting[o.head], true
}

// Pop removes the message that has waited longest.
func (o *Out) Pop() {
	size := o.waiting[o.head].Size
	o.waiting[o.head] = core.Body{}
	o.head++
	o.bytes -= size
	o.room.give(1, size)
	if o.head == len(o.waiting) {
		o.waiting, o.head = nil, 0
	}
}

// Withdraw removes and returns the waiting messages.
func (o *Out) Withdraw() []core.Body {
	left := o.waiting[o.head:]
	o.room.give(len(left), o.bytes)
	o.waiting, o.head, o.bytes = nil, 0, 0
	return left
}

// Room bounds the messages that wait at one region, by number and bytes. One shard may use an
// eighth, so that an unavailable shard does not starve others. Its methods may be called by any
// goroutine.
type Room struct {
	messages, bytes   int64
	waiting, occupied atomic.Int64
}

// NewRoom returns room for some messages.
func NewRoom(messages, bytes int) *Room {
	return &Room{messages: int64(messages), bytes: int64(bytes)}
}

const shareOfRoom = 8

// take takes room for a message that is to wait at o.
func (r *Room) take(o *Out, size int) bool {
	if r == nil || int64(o.Len()) >= max(1, r.messages/shareOfRoom) ||
		int64(o.bytes+size) > r.bytes/shareOfRoom {
		return false
	}
	waiting, occupied := r.waiting.Add(1), r.occupied.Add(int64(size))
	if waiting > r.messages || occupied > r.bytes {
		r.give(1, size)
		return false
	}
	return true
}

func (r *Room) give(messages, bytes int) {
	if r != nil {
		r.waiting.Add(-int64(messages))
		r.occupied.Add(-int64(bytes))
	}
}
