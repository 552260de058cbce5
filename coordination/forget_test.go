package coordination_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

func TestForget_WhatIsInUseIsNotForgotten(t *testing.T) {
	onStage(t, func(s *stage) {
		l := s.a.Lease("lease")
		s.that(l.Forget(), "a name that was never used")
		l = s.a.Lease("lease")
		g, _ := s.acquireWithin(l, time.Second)
		s.that(!l.Forget() && s.a.Lease("lease") == l, "held")
		other := s.b.Lease("lease")
		waits := make(chan *coordination.Grant)
		go func() {
			w, err := other.Acquire(s.Context())
			s.that(err == nil, "%v", err)
			waits <- w
		}()
		s.sleep(time.Second)
		s.that(!other.Forget(), "waited for")
		s.that(g.Release(s.Context()) == nil, "not released")
		s.that(l.Forget(), "released")
		w := <-waits
		s.that(g.Release(s.Context()) == nil && errors.Is(g.Check(), coordination.ErrReleased),
			"a grant from before")
		s.that(w.Check() == nil && w.Release(s.Context()) == nil, "released by another")
		stop := other.Observe()
		s.that(!other.Forget(), "observed")
		stop()
		s.sleep(time.Second)
		s.that(other.Forget(), "not observed any more")
		_ = s.a.Close(s.Context())
		s.that(!l.Forget(), "closed")
	})
}

// If a name was forgotten in between, an old Lease and a new one of that name are the same lease.
func TestForget_TheNameStaysOneLease(t *testing.T) {
	onStage(t, func(s *stage) {
		old := s.a.Lease("lease")
		g, _ := s.acquireWithin(old, time.Second)
		s.that(g.Release(s.Context()) == nil && old.Forget(), "not forgotten")
		again := s.a.Lease("lease")
		s.that(again != old, "the session remembers")
		a, _ := s.acquireWithin(again, time.Second)
		b, _ := s.acquireWithin(old, time.Second)
		s.that(a == b && a.Token() == 2, "%v and %v", a, b)
		s.that(!old.Forget(), "held through the new one")
		s.that(b.Release(s.Context()) == nil && a.Check() != nil, "not released")
	})
}

func TestForget_NamesDoNotAccumulate(t *testing.T) {
	onStage(t, func(s *stage) {
		for i := range 1000 {
			l := s.a.Lease(fmt.Sprint("lease-", i))
			g, err := l.TryAcquire(s.Context())
			s.that(err == nil && g.Release(s.Context()) == nil && l.Forget(), "%d: %v", i, err)
		}
		s.sleep(time.Minute)
	})
}

func TestYield_TheNextHolderNeedsOneCall(t *testing.T) {
	onStage(t, func(s *stage) {
		g, _ := s.acquireWithin(s.a.Lease("lease"), time.Second)
		_, _ = s.acquireWithin(s.b.Lease("other"), time.Second) // its session record exists
		left, err := g.Yield(s.Context())
		s.that(err == nil && left.Token == 1 && left.Version != "", "left %v, %v", left, err)
		before := s.b.Status().Calls
		got, err := s.b.Lease("lease").AcquireBlank(s.Context(), left)
		s.that(err == nil && got.Token() == 2, "%v, %v", got, err)
		after := s.b.Status().Calls
		load, swap := "load", "swap"
		calls := after[load].Succeeded - before[load].Succeeded +
			after[swap].Succeeded - before[swap].Succeeded
		s.that(calls == 1, "%d calls of the store", calls)
		again, err := g.Yield(s.Context())
		s.that(err == nil && again == coordination.Blank{}, "a second time: %v, %v", again, err)
		s.that(got.Release(s.Context()) == nil, "not released")
		late, err := s.a.Lease("lease").AcquireBlank(s.Context(), left) // out of date by now
		s.that(err == nil && late.Token() == 3, "%v, %v", late, err)
		none, err := s.a.Lease("third").AcquireBlank(s.Context(), coordination.Blank{})
		s.that(err == nil && none.Token() == 1, "%v, %v", none, err)
	})
}

func TestHolder_NamesTheSession(t *testing.T) {
	onStage(t, func(s *stage) {
		g, _ := s.acquireWithin(s.a.Lease("lease"), time.Second)
		h, err := s.b.Lease("lease").Holder(s.Context())
		s.that(err == nil && h.Session == s.a.ID(), "held by session %q, %v", h.Session, err)
		_, err = s.b.Lease("lease").TryAcquire(s.Context())
		held, ok := errors.AsType[*coordination.HeldError](err)
		s.that(ok && held.Holder.Session == s.a.ID(), "%v", err)
		s.that(g.Release(s.Context()) == nil, "not released")
		h, err = s.b.Lease("lease").Holder(s.Context())
		s.that(err == nil && h.Session == "", "held by session %q, %v", h.Session, err)
	})
}
