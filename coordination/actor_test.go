package coordination_test

import (
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

func TestAcquireTo_TellsOfGrantAndLoss(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.probe()
		cancel := s.a.Lease("lease").AcquireTo(s.system, p.pid)
		got := p.take()
		if len(got) != 1 || got[0].(*coordination.Acquired).Grant.Token() != 1 {
			s.Fatalf("got %v", got)
		}
		s.store.away.Store(true)
		s.sleep(30 * time.Second)
		got = p.take()
		s.that(types(got) == "*coordination.LeaseNearExpiry *coordination.LeaseLost ", "got %s",
			types(got))
		s.that(got[1].(*coordination.LeaseLost).Grant.Token() == 1, "of another tenure")
		s.store.away.Store(false)
		cancel()
		cancel()
		cancel = s.a.Lease("lease").AcquireTo(s.system, p.pid)
		s.sleep(10 * time.Second)
		s.that(types(p.take()) == "*coordination.Acquired ", "not again")
		cancel()
		s.sleep(time.Second)
		s.that(len(p.take()) == 0 && s.free(), "not released by cancel")
	})
}

func TestAcquireTo_WithdrawnOrClosed(t *testing.T) {
	onStage(t, func(s *stage) {
		s.that(s.free(), "b holds it")
		p := s.probe()
		cancel := s.a.Lease("lease").AcquireTo(s.system, p.pid)
		s.sleep(time.Minute)
		cancel()
		s.a.Lease("lease").AcquireTo(s.system, p.pid)
		s.sleep(time.Second)
		s.that(len(p.take()) == 0, "told too early")
		s.that(s.a.Close(s.Context()) == nil, "close")
		s.a.Lease("lease").AcquireTo(s.system, p.pid)
		got := p.take()
		s.that(len(got) == 2, "got %s", types(got))
		for _, m := range got {
			s.that(errors.Is(m.(*coordination.AcquireResult).Err, coordination.ErrClosed),
				"got %v", m)
		}
	})
}

func TestProps_AcquireReleaseByMessages(t *testing.T) {
	onStage(t, func(s *stage) {
		p, q := s.probe(), s.probe()
		a := s.system.Root.Spawn(coordination.Props(s.a.Lease("lease")))
		b := s.system.Root.Spawn(coordination.Props(s.b.Lease("lease")))
		ask := func(p *probe, m any) {
			to := a
			if p == q {
				to = b
			}
			s.system.Root.RequestWithCustomSender(to, m, p.pid)
			s.sleep(time.Second)
		}
		ask(p, &coordination.Acquire{})
		ask(p, &coordination.Acquire{})
		got := p.take()
		s.that(len(got) == 2 &&
			got[0].(*coordination.AcquireResult).Grant ==
				got[1].(*coordination.AcquireResult).Grant, "got %v", got)
		ask(q, &coordination.Acquire{})
		s.that(errors.Is(q.take()[0].(*coordination.AcquireResult).Err, coordination.ErrHeld),
			"not held")
		ask(q, &coordination.Acquire{Wait: time.Second / 2})
		s.that(errors.Is(q.take()[0].(*coordination.AcquireResult).Err, coordination.ErrHeld),
			"not held")
		ask(q, &coordination.Release{})
		s.that(*q.take()[0].(*coordination.ReleaseResult) == coordination.ReleaseResult{},
			"released nothing")
		ask(q, &coordination.Acquire{Wait: -1})
		ask(p, &coordination.Release{})
		s.that(*p.take()[0].(*coordination.ReleaseResult) == coordination.ReleaseResult{Token: 1},
			"release")
		s.that(q.take()[0].(*coordination.AcquireResult).Grant.Token() == 2, "not passed on")
		ask(p, &coordination.Acquire{Wait: time.Hour})
		ask(p, &coordination.Release{}) // while acquiring
		got = p.take()
		s.that(types(got) == "*coordination.AcquireResult *coordination.ReleaseResult ", "got %s",
			types(got))
		s.system.Root.Stop(b)
		s.sleep(time.Second)
		ask(p, &coordination.Acquire{})
		s.that(p.take()[0].(*coordination.AcquireResult).Grant.Token() == 3, "not released by stop")
		s.store.away.Store(true)
		s.sleep(time.Minute)
		got = p.take()
		s.that(types(got) == "*coordination.LeaseNearExpiry *coordination.LeaseLost ", "got %s",
			types(got))
		s.system.Root.Stop(a)
		s.sleep(0)
	})
}
