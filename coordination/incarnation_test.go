package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/lifecycle"
)

// nextSystem returns another actor system on the stage, as in the next incarnation of a member.
func (s *stage) nextSystem() *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	s.Cleanup(system.Shutdown)
	return system
}

// endIncarnation stops the components that the system has registered, within d, and returns how
// long that took.
func (s *stage) endIncarnation(system *actor.ActorSystem, d time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	t := time.Now()
	err := lifecycle.Of(system).Stop(ctx, nil)
	return time.Since(t), err
}

func TestGated_EndsWithItsSystem(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		first, second := s.nextSystem(), s.nextSystem()
		g, err := s.b.Lease("waits").TryAcquire(s.Context())
		s.that(err == nil, "%v %v", g, err)
		gated := coordination.Gated(s.a.Lease("lease"), 10, j.worker)
		first.Root.Spawn(gated)
		first.Root.Spawn(coordination.Gated(s.a.Lease("waits"), 10, j.worker))
		s.expect(j, "[start 1]")
		took, err := s.endIncarnation(first, time.Minute)
		s.that(err == nil && took < time.Second, "%v after %v", err, took)
		s.expect(j, "[stop 1]")
		pid := second.Root.Spawn(gated)
		s.expect(j, "[start 2]")
		late := first.Root.Spawn(gated)
		s.sleep(time.Second)
		first.Root.Send(late, "to an incarnation that is over")
		second.Root.Stop(pid)
		s.expect(j, "[stop 2]")
		s.that(s.free(), "not released")
	})
}

func TestAcquireTo_EndsWithItsSystem(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.probe()
		tell := func(name string) func() { return s.a.Lease(name).AcquireTo(s.system, p.pid) }
		cancel := tell("lease")
		_ = tell("kept")
		s.that(types(p.take()) == "*coordination.Acquired *coordination.Acquired ", "not acquired")
		begun := time.Now()
		ended := make(chan error)
		go func() {
			_, err := s.endIncarnation(s.system, time.Minute)
			ended <- err
		}()
		got := p.take()
		s.that(types(got) == "*coordination.LeaseLost *coordination.LeaseLost ", "got %s",
			types(got))
		lost := got[0].(*coordination.LeaseLost).Err
		s.that(lost.Why == coordination.Closed && errors.Is(lost, lifecycle.ErrStopping),
			"got %v", lost)
		s.that(!s.free(), "released while the work has time to end")
		cancel()
		s.sleep(time.Second)
		s.that(s.free(), "not released by cancel")
		s.that(errors.Is(<-ended, coordination.ErrUnknown), "stop")
		drain := 5 * time.Second
		s.that(time.Since(begun) >= drain && time.Since(begun) < drain+time.Second,
			"stopped after %v", time.Since(begun))
		g, err := s.b.Lease("kept").TryAcquire(s.Context())
		s.that(g == nil, "released while its work may run: %v", err)
		s.acquireWithin(s.a.Lease("kept"), time.Minute) // the next incarnation waits as long
		s.that(time.Since(begun) > 20*time.Second, "taken after %v", time.Since(begun))
		tell("late")
		got = p.take()
		s.that(len(got) == 1 && errors.Is(got[0].(*coordination.AcquireResult).Err,
			lifecycle.ErrStopping), "got %v", got)
	})
}

// TestAcquireTo_StopOutOfTimeReleasesNothing has a member that leaves before the Drain is
// over.
func TestAcquireTo_StopOutOfTimeReleasesNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.probe()
		s.a.Lease("lease").AcquireTo(s.system, p.pid)
		s.sleep(0)
		_, err := s.endIncarnation(s.system, time.Second)
		s.that(errors.Is(err, coordination.ErrUnknown), "got %v", err)
		s.sleep(5 * time.Second)
		s.that(!s.free(), "released while its work may run")
		s.sleep(30 * time.Second)
		s.that(s.free(), "not expired")
	})
}

func TestGated_ProducersThatFail(t *testing.T) {
	for name, produce := range map[string]func(coordination.Tenure) actor.Actor{
		"panics": func(coordination.Tenure) actor.Actor { panic("no") },
		"goexit": func(coordination.Tenure) actor.Actor { runtime.Goexit(); return nil },
		"nil":    func(coordination.Tenure) actor.Actor { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				p := s.probe()
				gate := s.system.Root.Spawn(coordination.Gated(s.a.Lease("lease"), 10, produce))
				s.system.Root.RequestWithCustomSender(gate, "kept", p.pid)
				s.sleep(time.Second)
				s.that(types(p.take()) == "*actor.DeadLetterResponse ",
					"the kept message is not answered")
				s.that(s.free(), "not released")
			})
		})
	}
}

// TestGated_ProducerThatBlocks loses the lease while produce blocks; the worker never starts.
func TestGated_ProducerThatBlocks(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		gate := s.system.Root.Spawn(coordination.Gated(s.a.Lease("lease"), 10,
			func(t coordination.Tenure) actor.Actor {
				if t.Token() == 1 {
					time.Sleep(time.Hour)
				}
				return j.worker(t)
			}))
		s.sleep(time.Second)
		s.store.away.Store(true)
		s.sleep(2 * time.Minute)
		s.store.away.Store(false)
		s.system.Root.Send(gate, "kept")
		s.expect(j, "[]")
		s.sleep(time.Hour)
		s.expect(j, "[start 2 kept]")
		s.system.Root.Stop(gate)
		s.expect(j, "[stop 2]")
	})
}

// TestGated_RestartReleasesAfterTheWorkerStopped tests a case in which Proto.Actor reports a
// restart to an actor while its children are still running.
func TestGated_RestartReleasesAfterTheWorkerStopped(t *testing.T) {
	onStage(t, func(s *stage) {
		j := &journal{}
		slow := func(t coordination.Tenure) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *actor.Stopping:
					time.Sleep(3 * time.Second)
				case *actor.Stopped:
					j.add("stopped, held by others: %v", s.free())
				}
			})
		}
		fails := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
				if m.Message == "fail" {
					panic(fmt.Sprint(m.Message))
				}
				next(ctx, m)
			}
		})
		gate := s.system.Root.Spawn(coordination.Gated(s.a.Lease("lease"), 10, slow).Configure(
			fails))
		s.sleep(time.Second)
		s.system.Root.Send(gate, "fail")
		s.sleep(10 * time.Second)
		s.expect(j, "[stopped, held by others: false]")
		s.system.Root.Stop(gate)
		s.sleep(10 * time.Second)
	})
}

// TestClose_ReleasesNothingThatWorkMayStillUse closes a session while work runs under its leases.
// Nobody knows when the work of such a lease ends, so the lease expires; a lease whose work returns
// is released.
func TestClose_ReleasesNothingThatWorkMayStillUse(t *testing.T) {
	onStage(t, func(s *stage) {
		_, err := s.a.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		returned := make(chan error, 1)
		go func() {
			returned <- s.a.Lease("does").Do(s.Context(), func(ctx context.Context,
				_ *coordination.Grant) error {
				<-ctx.Done()
				time.Sleep(4 * time.Second) // less than Drain
				return nil
			})
		}()
		s.sleep(time.Second)
		closing := time.Now()
		err = s.a.Close(context.Background())
		text := fmt.Sprint(err)
		s.that(errors.Is(err, coordination.ErrUnknown) && strings.Contains(text, `"lease"`) &&
			!strings.Contains(text, `"does"`), "got %v", err)
		s.that(<-returned == nil, "the work that returned")
		s.that(time.Since(closing) < 6*time.Second, "closed after %v", time.Since(closing))
		_, err = s.b.Lease("does").TryAcquire(s.Context())
		s.that(err == nil, "the lease of work that returned is not released: %v", err)
		s.acquireWithin(s.b.Lease("lease"), time.Minute)
		s.that(time.Since(closing) > 20*time.Second, "released after %v, while work may run",
			time.Since(closing))
	})
}

// TestClose_DoesNotWaitForALongTTL closes sessions whose store is away. Their leases would end by
// themselves only after an hour, or never.
func TestClose_DoesNotWaitForALongTTL(t *testing.T) {
	for _, forever := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &flaky{Store: memory.New()}
			session, err := coordination.Open(store, coordination.Config{TTL: time.Hour,
				Drain: time.Second, OperationTimeout: time.Second, Forever: forever})
			require.NoError(t, err)
			begun, done := make(chan struct{}), make(chan error, 1)
			go func() {
				done <- session.Lease("lease").Do(t.Context(), func(ctx context.Context,
					_ *coordination.Grant) error {
					close(begun)
					<-ctx.Done()
					return nil
				})
			}()
			<-begun
			store.away.Store(true)
			closing := time.Now()
			err = session.Close(context.Background())
			require.ErrorIs(t, err, coordination.ErrUnknown)
			require.ErrorContains(t, err, `"lease"`)
			require.LessOrEqual(t, time.Since(closing), 7*time.Second) // Drain, and six calls
			require.NoError(t, <-done)
		})
	}
}

// The leases that Close could not release for one reason are one line of its error.
func TestClose_NamesLeasesOfOneReasonInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		session, err := coordination.Open(store, coordination.Config{})
		require.NoError(t, err)
		for n := range 12 {
			_, err := session.Lease(fmt.Sprint("lease", n)).TryAcquire(t.Context())
			require.NoError(t, err)
		}
		err = session.Close(t.Context())
		require.ErrorIs(t, err, coordination.ErrUnknown)
		require.ErrorContains(t, err, `12 leases, ["lease0" "lease1" `)
		require.ErrorContains(t, err, `"lease7"] and others: `)
		require.NotContains(t, err.Error(), "\n")
	})
}
