package coordination_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// stage is an actor system and two sessions on one store, in a bubble.
type stage struct {
	*testing.T
	system *actor.ActorSystem
	store  *flaky
	a, b   *coordination.Session
}

func onStage(t *testing.T, play func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		})
		st := memory.New()
		s := &stage{T: t, system: actor.NewActorSystem(quiet), store: &flaky{Store: st}}
		s.a, s.b = s.open(s.store), s.open(st)
		play(s)
		_ = s.a.Close(t.Context())
		_ = s.b.Close(t.Context())
		time.Sleep(2 * time.Second) // the throttle of dead letters ends
		s.system.Shutdown()
		synctest.Wait()
	})
}

// times are round numbers.
var times = coordination.Config{TTL: 30 * time.Second, RenewInterval: 10 * time.Second,
	OperationTimeout: 3 * time.Second, RetryInterval: 5 * time.Second}

func (s *stage) open(store coordination.Store) *coordination.Session {
	session, err := coordination.Open(store, times)
	if err != nil {
		s.Fatal(err)
	}
	return session
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) that(ok bool, format string, args ...any) {
	s.Helper()
	if !ok {
		s.Errorf(format, args...)
	}
}

// free reports whether session b can acquire the lease now; b keeps it.
func (s *stage) free() bool {
	_, err := s.b.Lease("lease").TryAcquire(s.Context())
	return err == nil
}

// probe is an actor that keeps the messages it receives.
type probe struct {
	pid *actor.PID
	mu  sync.Mutex
	got []any
}

func (s *stage) probe() *probe {
	p := &probe{}
	p.pid = s.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.got = append(p.got, m)
		}
	}))
	s.Cleanup(func() {
		s.system.Root.Stop(p.pid)
		time.Sleep(2 * time.Second) // the throttle of dead letters ends, if it has stopped before
	})
	return p
}

// take returns the messages since the last take.
func (p *probe) take() []any {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// types returns the types of messages in order.
func types(messages []any) string {
	s := ""
	for _, m := range messages {
		s += fmt.Sprintf("%T ", m)
	}
	return s
}
