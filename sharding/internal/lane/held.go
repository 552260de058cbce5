package lane

import "sync/atomic"

// Held bounds the messages that wait in the slots of one member for entities that do not run yet:
// that are not remembered yet, are ending, or back off. One slot may use an eighth. The slots share
// it; its methods may be called by any goroutine.
type Held struct {
	most int
	used atomic.Int64
}

// NewHeld returns room for some messages.
func NewHeld(messages int) *Held { return &Held{most: messages} }

// Has implements core.Room.
func (h *Held) Has(own int) bool {
	return own < max(1, h.most/shareOfRoom) && h.used.Load() < int64(h.most)
}

// Hold implements core.Room.
func (h *Held) Hold(n int) { h.used.Add(int64(n)) }
