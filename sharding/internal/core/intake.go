package core

import "sync"

// Intake decides which messages of other members a shard accepts: those under exactly its tenure,
// in the order of their numbers. A receiver may ask it without a step of the Region. Its methods
// may be called by any goroutine.
type Intake struct {
	mu       sync.Mutex
	token    uint64            // of the tenure; 0: the shard accepts nothing
	last     map[Member]uint64 // highest number accepted from each member in this tenure
	counting bool              // the Region waits for messages
	pending  int               // deliveries that were accepted and not passed to the Region yet
}

// Verdict is what a shard does with a message.
type Verdict uint8

// Verdicts.
const (
	// Strange means that there is no such tenure here. The message is passed to the Region as
	// Received.
	Strange Verdict = iota
	// Repeated means that the message was accepted before, or a later one was. It is dropped.
	Repeated
	// Accepted means that the message goes to its entity, and if it is a delivery, to the Region as
	// Arrived.
	Accepted
	// Awaited is like Accepted, and the Region is notified with Arrived after that.
	Awaited
)

// Take decides about a message. The caller must pass accepted messages on in this order, and before
// the Region's next Stop or Kill of the tenure is carried out.
func (i *Intake) Take(from Member, d Data) Verdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.token == 0 || d.Token != i.token:
		return Strange
	case d.Number <= i.last[from]:
		return Repeated
	}
	i.last[from] = d.Number
	if d.Delivery != 0 {
		i.pending++
	}
	if i.counting {
		return Awaited
	}
	return Accepted
}

// passed counts a delivery that has reached the Region.
func (i *Intake) passed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pending = max(0, i.pending-1)
}

func (i *Intake) open(token uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.token, i.last, i.counting, i.pending = token, map[Member]uint64{}, false, 0
}

func (i *Intake) count() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counting = true
}

func (i *Intake) shut() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.token, i.last = 0, nil
}

// has reports whether all messages of a member up to this number have arrived.
func (i *Intake) has(from Member, number uint64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last[from] >= number
}

// drained reports whether all deliveries that were accepted have reached the Region.
func (i *Intake) drained() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending == 0
}
