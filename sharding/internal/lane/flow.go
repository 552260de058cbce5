package lane

import "sync"

// Flow counts the bytes of messages to entities of one other member, since it is in the view.
// Beyond the credit, messages wait in the bounded room of this region: a member that is slow or
// stopped holds up no other. Its methods may be called by any goroutine.
//
// Invariant: taken <= sent, and sent - taken < credit before each message that is sent.
type Flow struct {
	credit uint64

	mu          sync.Mutex
	sent, taken uint64
	marked      uint64 // sent, when the member was last asked to confirm it
}

// NewFlow returns a flow with a credit in bytes.
func NewFlow(credit int) *Flow { return &Flow{credit: uint64(credit)} }

// perMessage is what a message counts for beyond its size.
const perMessage = 64

// spend counts a message that is sent, unless the credit is used up. After each eighth of the
// credit, ask is what the member must be asked to confirm.
func (f *Flow) spend(size int) (ask uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent-f.taken >= f.credit {
		return 0, false
	}
	f.sent += uint64(size) + perMessage
	if f.sent-f.marked >= f.credit/8 {
		f.marked = f.sent
		ask = f.sent
	}
	return ask, true
}

// Mark returns what the member must be asked to confirm.
func (f *Flow) Mark() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marked = f.sent
	return f.sent
}

// Open reports whether the member has not confirmed everything.
func (f *Flow) Open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken < f.sent
}

// Confirm records what the member has taken, and reports whether that is new.
func (f *Flow) Confirm(taken uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if taken <= f.taken || taken > f.sent {
		return false
	}
	f.taken = taken
	return true
}
