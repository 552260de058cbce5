package simnet_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/stretchr/testify/require"
)

// joined returns a system on its own network.
func joined(t *testing.T) *actor.ActorSystem {
	n := simnet.New(simnet.Options{})
	s := simnet.NewSystem("s")
	n.Join(s, "s:1")
	t.Cleanup(func() {
		s.Shutdown()
		n.Close()
	})
	return s
}

func TestWorkers_AnActorThatBlocksHoldsUpNobody(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		s := joined(t)
		gate := make(chan struct{})
		var mu sync.Mutex
		done := 0
		wait := actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				<-gate
				mu.Lock()
				defer mu.Unlock()
				done++
			}
		})
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return done
		}
		for range 3 { // the first round starts goroutines, later ones reuse them
			gate = make(chan struct{})
			before := count()
			for range 10 {
				pid := s.Root.Spawn(wait)
				s.Root.Send(pid, "go")
				s.Root.Poison(pid)
			}
			synctest.Wait()
			require.Equal(t, before, count())
			close(gate)
			synctest.Wait()
			require.Equal(t, before+10, count())
		}
	})
}

// inCaller is a dispatcher that runs in the caller's goroutine and counts calls.
type inCaller struct{ n int }

func (d *inCaller) Throughput() int { return 1 }
func (d *inCaller) Schedule(f func()) {
	d.n++
	f()
}

func TestWorkers_PropsKeepTheirDispatcher(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		s := joined(t)
		d := &inCaller{}
		got := ""
		pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(string); ok {
				got = m
			}
		}, actor.WithDispatcher(d)))
		s.Root.Send(pid, "now")
		require.Equal(t, "now", got, "handled before Send returned")
		require.Equal(t, 2, d.n)
	})
}

func TestWorkers_PropsKeepTheirGuardian(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		s := joined(t)
		var failed []any
		guardian := actor.NewOneForOneStrategy(0, time.Second, func(reason any) actor.Directive {
			failed = append(failed, reason)
			return actor.StopDirective
		})
		pid := s.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				panic("broken")
			}
		}, actor.WithGuardian(guardian)))
		s.Root.Send(pid, "break")
		synctest.Wait()
		require.Equal(t, []any{"broken"}, failed)
	})
}

// The initial processes of a system are still found in the smaller registry, and so are later ones.
func TestJoin_TheRegistryIsWhole(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		s := joined(t)
		for _, id := range []string{"deadletter", "eventstream"} {
			_, ok := s.ProcessRegistry.GetLocal(id)
			require.True(t, ok, id)
		}
		for range 100 {
			pid := s.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			_, ok := s.ProcessRegistry.GetLocal(pid.Id)
			require.True(t, ok)
			s.Root.Stop(pid)
			synctest.Wait()
			_, ok = s.ProcessRegistry.GetLocal(pid.Id)
			require.False(t, ok)
		}
	})
}
