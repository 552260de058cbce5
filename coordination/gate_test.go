package coordination_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// journal records the actions of workers, and answers strings.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := fmt.Sprint(j.lines)
	j.lines = nil
	return s
}

func (j *journal) worker(t coordination.Tenure) actor.Actor {
	return actor.ReceiveFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			j.add("start %v", t.Token())
		case *actor.Stopped:
			j.add("stop %v", t.Token())
		case string:
			j.add("%s", m)
			ctx.Respond("re " + m)
			if m == "fail" {
				panic("as asked")
			}
			if m == "quit" {
				ctx.Stop(ctx.Self())
			}
		}
	})
}

func (s *stage) gate(j *journal, limit int) *actor.PID {
	return s.system.Root.Spawn(coordination.Gated(s.a.Lease("lease"), limit, j.worker))
}

func (s *stage) expect(j *journal, want string) {
	s.Helper()
	s.sleep(0)
	if got := j.take(); got != want {
		s.Errorf("got %s, want %s", got, want)
	}
}

func TestGated_KeepsMessagesUntilHeld(t *testing.T) {
	onStage(t, func(s *stage) {
		g, err := s.b.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		j, p := &journal{}, s.probe()
		gate := s.gate(j, 2)
		var dead []any
		sub := s.system.EventStream.Subscribe(func(m any) {
			if d, ok := m.(*actor.DeadLetterEvent); ok {
				dead = append(dead, d.Message)
			}
		})
		defer s.system.EventStream.Unsubscribe(sub)
		for _, m := range []string{"one", "two", "three"} {
			s.system.Root.RequestWithCustomSender(gate, m, p.pid)
		}
		s.sleep(time.Minute)
		s.expect(j, "[]")
		s.that(fmt.Sprint(dead) == "[three]", "dead letters %v", dead)
		s.that(types(p.take()) == "*actor.DeadLetterResponse ", "the sender is told")
		s.that(g.Release(s.Context()) == nil, "release")
		s.sleep(time.Second)
		s.system.Root.RequestWithCustomSender(gate, "four", p.pid)
		s.expect(j, "[start 2 one two four]")
		s.that(fmt.Sprint(p.take()) == "[re one re two re four]", "answers")
		s.system.Root.Stop(gate)
		s.expect(j, "[stop 2]")
		s.that(s.free(), "not released")
	})
}

func TestGated_LossStopsTheWorkerInTime(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		gate := s.gate(j, 10)
		s.expect(j, "[start 1]")
		s.store.away.Store(true)
		taken := make(chan time.Time, 1)
		go func() {
			g, err := s.b.Lease("lease").Acquire(s.Context())
			s.that(err == nil, "%v", err)
			j.add("other %v", g.Token())
			time.Sleep(time.Minute)
			s.that(g.Release(s.Context()) == nil, "release")
			taken <- time.Now()
		}()
		s.sleep(40 * time.Second)
		s.system.Root.Send(gate, "later")
		s.expect(j, "[stop 1 other 2]")
		s.store.away.Store(false)
		<-taken
		s.sleep(10 * time.Second)
		s.expect(j, "[start 3 later]")
		s.system.Root.Stop(gate)
		s.expect(j, "[stop 3]")
	})
}

// The worker fails, and produce takes longer to make it again than the lease lasts.
func TestGated_AWorkerDoesNotStartAfterALossMeanwhile(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		made := 0
		gate := s.system.Root.Spawn(coordination.Gated(s.a.Lease("lease"), 10,
			func(t coordination.Tenure) actor.Actor {
				if made++; made == 2 {
					s.store.away.Store(true)
					time.Sleep(time.Minute)
				}
				return j.worker(t)
			}))
		s.expect(j, "[start 1]")
		s.system.Root.Send(gate, "fail")
		s.sleep(2 * time.Minute)
		s.expect(j, "[fail]")
		s.store.away.Store(false)
		s.sleep(time.Minute)
		s.expect(j, "[start 2]")
		s.system.Root.Stop(gate)
		s.expect(j, "[stop 2]")
	})
}

func TestGated_ReleasedElsewhereMakesANewWorker(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		gate := s.gate(j, 10)
		s.sleep(0)
		g, err := s.a.Lease("lease").TryAcquire(s.Context()) // the same grant
		s.that(err == nil && g.Token() == 1, "%v %v", g, err)
		s.that(g.Release(s.Context()) == nil, "release")
		s.sleep(time.Second)
		s.expect(j, "[start 1 stop 1 start 2]")
		s.system.Root.Stop(gate)
		s.sleep(0)
	})
}

func TestGated_WorkerThatStopsItselfEndsIt(t *testing.T) {
	onStage(t, func(s *stage) {
		j, p := &journal{}, s.probe()
		gate := s.gate(j, 10)
		s.system.Root.Send(gate, "quit")
		s.expect(j, "[start 1 quit stop 1]")
		s.that(s.free(), "not released")
		s.system.Root.RequestWithCustomSender(gate, "anybody", p.pid)
		s.that(types(p.take()) == "*actor.DeadLetterResponse ", "still there")
	})
}

// Once, a forged termination of its worker stopped a gate, which released the lease while the
// worker continued under it.
func TestGated_ATerminationIsComparedWithTheWorker(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		gate := s.gate(j, 10)
		s.sleep(time.Second)
		var worker *actor.PID
		for _, bucket := range s.system.ProcessRegistry.LocalPIDs.LocalPIDs {
			bucket.IterCb(func(id string, _ any) {
				if strings.HasPrefix(id, gate.Id+"/") {
					worker = actor.NewPID(gate.Address, id)
				}
			})
		}
		p, _ := s.system.ProcessRegistry.GetLocal(gate.Id)
		p.SendSystemMessage(gate, &actor.Terminated{Who: worker})
		s.sleep(time.Second)
		s.that(!s.free(), "released")
		s.expect(j, "[start 1]")
		s.system.Root.Send(gate, "quit")
		s.expect(j, "[quit stop 1]")
		s.that(s.free(), "not released")
	})
}

func TestGated_StopWhileAcquiring(t *testing.T) {
	onStage(t, func(s *stage) {
		s.store.away.Store(true)
		j, p := &journal{}, s.probe()
		gate := s.gate(j, 10)
		s.system.Root.RequestWithCustomSender(gate, "kept", p.pid)
		s.sleep(time.Second)
		s.system.Root.Stop(gate)
		s.store.away.Store(false)
		s.that(types(p.take()) == "*actor.DeadLetterResponse ", "the kept message is answered")
		s.sleep(time.Minute)
		s.expect(j, "[]")
		s.that(s.free(), "zombie holder")
	})
}

func TestGated_ClosedSessionStopsIt(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		gate := s.gate(j, 10)
		s.sleep(time.Second)
		s.that(s.a.Close(s.Context()) == nil, "close")
		s.expect(j, "[start 1 stop 1]")
		late := s.gate(j, 10)
		s.sleep(0)
		s.that(s.free(), "not released")
		s.system.Root.Stop(gate)
		s.system.Root.Stop(late)
		s.sleep(0)
	})
}
