package core

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

// Bugs of our own: occasionally a step panics in the middle, and the replica resumes with its
// state.

// planted is the panic of a test.
type planted struct{ place string }

// breakOff carries out: break MEMBER after PLACES.
func (s *play) breakOff(a sim.Args) { s.slots[a.Int(0, len(s.slots))].fuse = a.Int(2, 1<<20) }

// burn is called at each place where a step may panic.
func (sl *slot) burn(place string) {
	if sl.fuse--; sl.fuse == 0 {
		panic(planted{place})
	}
}

// attempt takes a step. If that panics, the replica resumes under the id that the step has left it,
// without having lost anything.
func (s *play) attempt(sl *slot, ev Event) (effects []Effect) {
	was, seen := sl.core.Replica(), sl.core.Seen()
	sl.broke = false
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		b, ok := p.(planted)
		if !ok {
			panic(p)
		}
		s.happened["panics"]++
		sl.broke = true
		s.w.Note("%s: %T panics %s", sl.id(), ev, b.place)
		var calls []uint64
		for id := range s.nextID {
			if sl.calls[id+1] {
				calls = append(calls, id+1)
			}
		}
		effects = sl.core.Resume(s.now(sl), calls)
		for _, e := range effects {
			if r, ok := e.(Restored); ok && r.Was == was { // the step began anew before it panicked
				was = r.Is
			}
		}
		if sl.core.Replica() != was || !seen.Leq(sl.core.Seen()) {
			s.w.Fail("%s is %v at %v, was %v at %v", sl.id(), sl.core.Replica(), sl.core.Seen(),
				was, seen)
		}
		if err := audit(sl.core); err != nil {
			s.w.Fail("%s: %v", sl.id(), err)
		}
	}()
	return sl.core.Step(s.now(sl), ev)
}

// call records a call, which must be answered exactly once, unless its member is killed or ends its
// incarnation.
func (s *play) call(sl *slot) uint64 {
	s.nextID++
	id, core := s.nextID, sl.core
	sl.calls[id] = true
	s.w.After(9*time.Second, func() {
		if sl.core == core && sl.calls[id] {
			s.w.Fail("%s has not answered call %d", sl.id(), id)
		}
	})
	return id
}

func (p planted) String() string { return fmt.Sprintf("planted %s", p.place) }
