package core

import (
	"fmt"
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
	s.happened["changes of records"]++
	if m.Counted() == 0 { // the last member has left, and its data is lost
		s.happened["times nobody was left"]++
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
	s := *seeds
	s.Count = (s.Count + 3) / 4
	histories(t, s, func(w *sim.World) *play {
		s := newFluxPlayOn(w, &simStore{})
		s.runFlux()
		return s
	}, "acknowledged writes", "reads checked", "joins", "members that left", "members gone",
		"changes of records")
}
