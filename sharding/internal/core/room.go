package core

import "sync/atomic"

// shareOfBuffer is the divisor for the part of a bound that one shard may use, so that an
// unavailable shard does not starve others.
const shareOfBuffer = 8

// Room bounds the messages that wait in the slots of one member for entities that do not run yet:
// that are not remembered yet, are ending, or back off. One slot may use a part of it. The slots
// share it; its methods may be called by any goroutine.
type Room struct {
	most int
	used atomic.Int64
}

// NewRoom returns room for some messages.
func NewRoom(messages int) *Room { return &Room{most: messages} }

// has reports whether a slot with some messages may get another one.
func (r *Room) has(own int) bool {
	return own < max(1, r.most/shareOfBuffer) && r.used.Load() < int64(r.most)
}
