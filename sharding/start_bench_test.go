package sharding

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	leases "github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// replier is an entity that counts its messages.
type replier struct{ handled *sync.WaitGroup }

func (r *replier) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
		r.handled.Done()
	}
}

// openShard returns a shard that is active on an actor system of its own, without a region.
func openShard(tb testing.TB, produce func(Entity) actor.Actor) *hostedShard {
	tb.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(
		func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	session, err := coordination.Open(leases.New(), coordination.Config{TTL: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	grant, err := session.Lease("cart-0").TryAcquire(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	l := &binding{system: system, cfg: Config{Type: "cart"}.withDefaults(), session: session,
		produce: produce, counts: &counters{}, clock: timer.ClockOf(system), log: system.Logger(),
		room: lane.NewHeld(1000), closed: make(chan struct{})}
	l.guardian = bugs.Guardian(l.component(), &l.counts.panics)
	s := &hostedShard{binding: l, out: lane.NewOut(lane.NewRoom(1000, 1<<20))}
	l.shards = []*hostedShard{s}
	supervisor, err := spawnSupervisor(s, 1)
	if err != nil {
		tb.Fatal(err)
	}
	s.open(1, grant, supervisor, 0)
	s.enter(core.Open{Token: 1})
	tb.Cleanup(func() {
		s.last(1)
		l.actors.Wait()
		_ = session.Close(context.Background())
	})
	return s
}

// BenchmarkStart measures the start of an entity by its first message.
func BenchmarkStart(b *testing.B) {
	var handled sync.WaitGroup
	s := openShard(b, func(Entity) actor.Actor { return &replier{&handled} })
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = "entity-" + strconv.Itoa(1_000_000+i)
	}
	handled.Add(b.N)
	message := wrapperspb.Int64(1)
	b.ReportAllocs()
	b.ResetTimer()
	work := processor()
	for _, id := range ids {
		if err := s.send(id, message, nil); err != nil {
			b.Fatal("the shard is not open")
		}
	}
	handled.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processor()-work).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// asker starts entities by requests, each after the answer to the one before.
type asker struct {
	shard *hostedShard
	next  func() (id string, ok bool)
	done  *sync.WaitGroup
}

func (a *asker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, *wrapperspb.Int64Value:
	default:
		return
	}
	id, ok := a.next()
	if !ok {
		a.done.Done()
		ctx.Stop(ctx.Self())
		return
	}
	request := &actor.MessageEnvelope{Message: wrapperspb.Int64(1), Sender: ctx.Self()}
	if err := a.shard.send(id, request, nil); err != nil {
		panic("the shard is not open")
	}
}

// BenchmarkStartRequested measures the start of an entity by a request, with 1,000 under way.
func BenchmarkStartRequested(b *testing.B) {
	s := openShard(b, func(Entity) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if ctx.Sender() != nil {
				ctx.Respond(wrapperspb.Int64(1))
			}
		})
	})
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = "entity-" + strconv.Itoa(1_000_000+i)
	}
	var taken atomic.Int64
	next := func() (string, bool) {
		i := int(taken.Add(1)) - 1
		if i >= len(ids) {
			return "", false
		}
		return ids[i], true
	}
	b.ReportAllocs()
	b.ResetTimer()
	work := processor()
	var done sync.WaitGroup
	for range 1000 {
		done.Add(1)
		s.binding.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &asker{s, next, &done}
		}))
	}
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processor()-work).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// echo is an entity that answers every thousandth message.
type echo struct {
	count    int
	answered chan struct{}
}

func (e *echo) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
		if e.count++; e.count%1000 == 0 {
			e.answered <- struct{}{}
		}
	}
}

// BenchmarkTell measures a message to an entity that runs, with at most 2,000 under way.
func BenchmarkTell(b *testing.B) {
	answered := make(chan struct{}, 2)
	s := openShard(b, func(Entity) actor.Actor { return &echo{answered: answered} })
	message := wrapperspb.Int64(1)
	answered <- struct{}{}
	b.ReportAllocs()
	b.ResetTimer()
	work := processor()
	for i := range b.N {
		if i%1000 == 0 {
			<-answered
		}
		if err := s.send("entity", message, nil); err != nil {
			b.Fatal("the shard is not open")
		}
	}
	b.ReportMetric(float64((processor()-work).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// processor returns the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
