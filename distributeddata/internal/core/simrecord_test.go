package core

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/sim"
)

// simStore keeps the record of a history's membership [M9]. Calls and answers are lost or delayed,
// and it is sometimes down for a while.
type simStore struct {
	text    []byte
	version int
	memory  quorum.Memory // the decoded record
	swaps   int
	emptied int
}

func (st *simStore) mark() string {
	if st.version == 0 {
		return ""
	}
	return fmt.Sprint(st.version)
}

// call carries out a call of a member, or not, and answers it, or reports an unknown outcome.
func (st *simStore) call(s *play, sl *slot, e Effect) {
	core := sl.core
	answer := func(ev Event, unknown Event) {
		if s.w.Chance("store answer lost", 1./20) {
			ev = unknown
		}
		s.w.After(s.w.Span("store-answers", time.Millisecond, 50*time.Millisecond), func() {
			if sl.core == core {
				s.step(sl, ev)
			}
		})
	}
	lost := s.w.Chance("store call lost", 1./20)
	s.w.After(s.w.Span("store-call", time.Millisecond, 200*time.Millisecond), func() {
		switch e := e.(type) {
		case LoadRecord:
			failed := RecordLoaded{ID: e.ID, Err: errDown}
			if lost {
				answer(failed, failed)
				return
			}
			answer(RecordLoaded{ID: e.ID, Record: st.text, Version: st.mark()}, failed)
		case SwapRecord:
			failed := RecordSwapped{ID: e.ID, Err: errDown}
			if lost {
				answer(failed, failed)
				// It may still be carried out.
				s.w.After(s.w.Span("store late", 0, 3*time.Second), func() { st.swap(s, e) })
				return
			}
			ok := st.swap(s, e)
			answer(RecordSwapped{ID: e.ID, Swapped: ok, Version: st.mark()}, failed)
		}
	})
}

func (st *simStore) swap(s *play, e SwapRecord) bool {
	if e.Old != st.mark() {
		return false
	}
	m, err := quorum.ReadRecord(e.Next)
	switch {
	case err != nil:
		s.w.Fail("a record that nobody can read: %v", err)
	case m.Epoch <= st.memory.Epoch:
		s.w.Fail("epoch %d after %d", m.Epoch, st.memory.Epoch)
	}
	st.text, st.memory = e.Next, m
	st.version++
	st.swaps++
	if m.Counted() == 0 { // the last member has left, and its data is lost
		st.emptied++
		s.acked, s.shown, s.linear = nil, nil, nil
		for _, sl := range s.slots {
			sl.handed = nil // another may count before the last one learns that it is gone
		}
		for id := range s.reads {
			s.reads[id] = nil
		}
	}
	return true
}

func TestHistories_WhereTheMembershipIsARecord(t *testing.T) {
	var mu sync.Mutex
	var acked, checked, joins, left, swaps, emptied, removed int
	s := *seeds
	s.Count = (s.Count + 3) / 4
	sim.Run(t, s, func(w *sim.World) {
		st := &simStore{}
		s := newFluxPlayOn(w, st)
		s.runFlux()
		mu.Lock()
		defer mu.Unlock()
		f := s.flux
		acked, checked, joins, left, swaps = acked+s.acks, checked+s.checked, joins+f.joins,
			left+f.left, swaps+st.swaps
		emptied, removed = emptied+st.emptied, removed+s.memory().Count(quorum.Gone)
	})
	t.Logf("%d acknowledged writes, %d reads checked, %d joins, %d members that left, %d forgotten, %d changes of records, %d times nobody was left",
		acked, checked, joins, left, removed, swaps, emptied)
	if seeds.Count >= 50 && (acked == 0 || checked == 0 || joins == 0 || left == 0 ||
		removed == 0 || swaps == 0) {
		t.Error("the histories do not exercise what they should")
	}
}
