package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
)

// counter signals when it has received a number of messages.
type counter struct {
	left int
	done chan struct{}
}

func (c *counter) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
		if c.left--; c.left == 0 {
			close(c.done)
		}
	}
}

// BenchmarkTell compares a message to the singleton on the same member with a message to any actor.
func BenchmarkTell(b *testing.B) {
	b.Run("actor", func(b *testing.B) {
		system := simnet.NewSystem("s")
		c := &counter{left: b.N, done: make(chan struct{})}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
		tell(b, system, pid, c)
	})
	b.Run("singleton", func(b *testing.B) {
		session, err := coordination.Open(memory.New(), coordination.Config{})
		if err != nil {
			b.Fatal(err)
		}
		defer session.Close(context.Background())
		c := &counter{left: b.N, done: make(chan struct{})}
		var s *singleton.Singleton
		cluster := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
			s, err = singleton.New(m.System, session, singleton.Config{Name: "jobs"},
				func(coordination.Tenure) actor.Actor {
					return c
				})
			if err != nil {
				b.Fatal(err)
			}
		}})
		defer cluster.Close()
		defer s.Close(context.Background())
		for _, ok := s.Where(); !ok; _, ok = s.Where() {
			time.Sleep(time.Millisecond)
		}
		tell(b, cluster.Member(0).System, s.PID(), c)
	})
}

func tell(b *testing.B, system *actor.ActorSystem, pid *actor.PID, c *counter) {
	b.ReportAllocs()
	m := wrapperspb.Int64(1)
	b.ResetTimer()
	for range b.N {
		system.Root.Send(pid, m)
	}
	<-c.done
}
