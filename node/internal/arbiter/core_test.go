package arbiter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/node/internal/arbiter"
)

// stage is one arbiter and its latest effects.
type stage struct {
	*testing.T
	core *arbiter.Core
	now  time.Time
	gate arbiter.Gate
	try  uint64
	gave uint64 // the attempt that was released
	said arbiter.Verdict
	here bool
	wake time.Time
}

func newStage(t *testing.T, cfg arbiter.Config) *stage {
	return &stage{T: t, core: arbiter.New(cfg), now: time.Unix(1_700_000_000, 0)}
}

func (s *stage) step(e any) {
	for _, e := range s.core.Step(s.now, e) {
		switch e := e.(type) {
		case arbiter.Gate:
			s.gate = e
		case arbiter.Tell:
			s.here = e.Here
		case arbiter.Try:
			s.try = e.Op
		case arbiter.Release:
			s.gave = e.Op
		case arbiter.Send:
			s.said = e.Verdict
		}
	}
	s.wake = s.core.NextWake()
}

// sees passes the core a view; the first member is the oldest, and "me" is the core's own.
func (s *stage) sees(members ...string) {
	oldest := members[0]
	s.step(arbiter.View{Self: "me", Oldest: oldest, Members: slices.Clone(members)})
}

// pass advances the time, with the wakes that the core asked for.
func (s *stage) pass(d time.Duration) {
	for end := s.now.Add(d); ; {
		if s.wake.IsZero() || s.wake.After(end) {
			s.now = end
			return
		}
		s.now, s.wake = s.wake, time.Time{}
		s.step(arbiter.Wake{})
	}
}

func (s *stage) that(ok bool, what string) {
	s.Helper()
	if !ok {
		s.Errorf("not %s: %v, gate %v, try %d", what, s.core, s.gate, s.try)
	}
}

func TestCore_AMemberThatStartsHoldsTheLeaseOnce(t *testing.T) {
	s := newStage(t, arbiter.Config{})
	s.sees("me")
	s.that(!s.gate.Open && s.try == 0, "shut, and waiting for sides that are there")
	s.pass(3 * time.Second)
	s.that(!s.gate.Open && s.try == 1, "shut while it tries")
	s.step(arbiter.Tried{Op: 1, Result: arbiter.Taken})
	s.that(!s.gate.Open, "shut while another side holds it")
	s.pass(3 * time.Second)
	s.step(arbiter.Tried{Op: 2, Result: arbiter.Held})
	s.that(s.gate.Open && s.here, "open")
	s.pass(10 * time.Second)
	s.that(s.gate.Open && !s.here && s.gave == 2, "open without the lease")
}

func TestCore_AFlapChangesNothing(t *testing.T) {
	s := newStage(t, arbiter.Config{})
	s.sees("me", "b", "c", "d")
	s.pass(3 * time.Second)
	s.step(arbiter.Tried{Op: 1, Result: arbiter.Held})
	s.pass(10 * time.Second)
	for range 5 {
		s.sees("me")
		s.pass(1900 * time.Millisecond)
		s.sees("me", "b", "c", "d")
		s.pass(100 * time.Millisecond)
	}
	s.that(s.gate.Open && s.try == 1 && s.said.Kind == arbiter.Whole, "as before")
}

// TestCore_SidesTryInTheOrderOfTheirSizes uses seven members.
func TestCore_SidesTryInTheOrderOfTheirSizes(t *testing.T) {
	names := []string{"me", "b", "c", "d", "e", "f", "g", "h"}
	last := time.Duration(-1)
	for size := 7; size > 0; size-- {
		s := newStage(t, arbiter.Config{})
		s.sees(names...)
		s.pass(3 * time.Second)
		s.step(arbiter.Tried{Op: 1, Result: arbiter.Held})
		s.pass(10 * time.Second)
		s.sees(names[:size]...)
		took := time.Duration(0)
		for ; s.try == 1 && took < 10*time.Second; took += 10 * time.Millisecond {
			s.pass(10 * time.Millisecond)
		}
		switch {
		case size > 4 && (took > 2010*time.Millisecond || !s.gate.Open):
			t.Errorf("majority of %d tries after %v, gate %v", size, took, s.gate)
		case size <= 4 && (took <= last || took < 4500*time.Millisecond || s.gate.Open):
			t.Errorf("%d try after %v, gate %v", size, took, s.gate)
		}
		last = took
	}
}

// TestCore_AGrantThatNobodyWantsIsReleased grants the lease too late, or to a member that has left.
func TestCore_AGrantThatNobodyWantsIsReleased(t *testing.T) {
	s := newStage(t, arbiter.Config{})
	s.sees("me")
	s.pass(3 * time.Second)
	s.pass(6 * time.Second)
	s.that(s.try > 1, "trying again after an attempt without an answer")
	s.step(arbiter.Tried{Op: 1, Result: arbiter.Held})
	s.that(s.gave == 1 && !s.gate.Open, "released")
}

func TestCore_AnEndedCoreIsSilent(t *testing.T) {
	s := newStage(t, arbiter.Config{})
	s.sees("me", "b")
	s.pass(3 * time.Second)
	s.step(arbiter.Tried{Op: 1, Result: arbiter.Held})
	s.step(arbiter.View{Self: "me", Removed: true})
	s.that(!s.gate.Open && s.gave == 1 && !s.here, "ended")
	if out := s.core.Step(s.now, arbiter.Wake{}); len(out) > 0 {
		t.Errorf("then %v", out)
	}
	if out := s.core.Step(s.now, arbiter.Tried{Op: 9, Result: arbiter.Held}); len(out) != 1 {
		t.Errorf("a late grant is not released: %v", out)
	}
}

func TestConfig_NamesEveryProblem(t *testing.T) {
	if err := (arbiter.Config{}).Validate(); err != nil {
		t.Error(err)
	}
	err := arbiter.Config{Members: -1, Hold: -1, Delay: 2 * time.Hour,
		Lapse: time.Second}.Validate()
	for _, part := range []string{"Members (-1)", "Hold (-1ns)", "Delay (2h0m0s)", "twice Beat"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, errors.Unwrap(err))
		}
	}
}
