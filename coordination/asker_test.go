package coordination_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// An asker that has terminated holds no lease and waits for none. A grant that another asker shares
// stays.
func TestProps_DeadAskerHoldsNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		p, q, r := s.probe(), s.probe(), s.probe()
		a := s.system.Root.Spawn(coordination.Props(s.a.Lease("lease")))
		b := s.system.Root.Spawn(coordination.Props(s.b.Lease("lease")))
		ask := func(to *actor.PID, p *probe, m any) {
			s.system.Root.RequestWithCustomSender(to, m, p.pid)
			s.sleep(time.Second)
		}
		ask(a, p, &coordination.Acquire{})
		ask(a, q, &coordination.Acquire{})
		ask(b, r, &coordination.Acquire{Wait: -1})
		s.that(types(p.take())+types(
			q.take()) == "*coordination.AcquireResult *coordination.AcquireResult ",
			"not held by both")
		s.system.Root.Send(a, &actor.Terminated{Who: q.pid})
		s.system.Root.Stop(p.pid)
		s.sleep(10 * time.Second)
		s.that(!s.free() && len(q.take()) == 0, "released although q holds it")
		s.system.Root.Stop(r.pid)
		s.sleep(time.Second)
		s.system.Root.Stop(q.pid)
		s.sleep(10 * time.Second)
		s.that(s.free(), "q is gone, and so is r that has waited")
	})
}

// A future that has timed out before the answer holds no lease.
func TestProps_LateFutureHoldsNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		g, err := s.b.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		a := s.system.Root.Spawn(coordination.Props(s.a.Lease("lease")))
		_, err = s.system.Root.RequestFuture(a, &coordination.Acquire{Wait: -1},
			time.Second).Result()
		s.that(err != nil, "granted")
		s.that(g.Release(s.Context()) == nil, "not released")
		s.sleep(10 * time.Second)
		g, err = s.b.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil && g.Release(s.Context()) == nil, "held for a future that is gone: %v",
			err)
		res, err := s.system.Root.RequestFuture(a, &coordination.Acquire{Wait: -1},
			20*time.Second).Result()
		s.that(err == nil && res.(*coordination.AcquireResult).Err == nil,
			"a future in time: %v %v", res, err)
		s.sleep(10 * time.Second)
		s.that(!s.free(), "released behind its back")
	})
}
