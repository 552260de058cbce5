//go:build unix

package loopback

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// BenchmarkNotice measures the time from an update at one member until a subscriber at another one
// is told, without NotifyInterval, with and without a pause between updates. It alternates with a
// message to a bare actor there.
func BenchmarkNotice(b *testing.B) {
	for _, pause := range []time.Duration{0, 3 * time.Millisecond} {
		b.Run(fmt.Sprint("pause=", pause), func(b *testing.B) { benchNotice(b, pause) })
	}
}

func benchNotice(b *testing.B, pause time.Duration) {
	l := newLoopback(b, 2)
	l.cfg.NotifyInterval = -1
	l.start(2)
	ctx, key := context.Background(), distributeddata.NewKey("counter", crdt.PNCounter{})
	told, heard := make(chan int64, 1000), make(chan struct{}, 1)
	subscriber := l.systems[1].Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*distributeddata.Changed[crdt.PNCounter]); ok {
			told <- m.Value.Value()
		}
	}))
	key.Subscribe(l.dds[1], subscriber, nil)
	bare := l.systems[1].Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
			heard <- struct{}{}
		}
	}))
	far := actor.NewPID(l.systems[1].Address(), bare.Id)
	next := int64(0)
	update := func() {
		next++
		if _, err := key.Update(ctx, l.dds[0], increment, distributeddata.Local); err != nil {
			b.Fatal(err)
		}
		for n := range told {
			if n == next {
				return
			}
		}
	}
	tell := func() {
		l.systems[0].Root.Send(far, wrapperspb.Int64(1))
		<-heard
	}
	notices, tells := inTurn(b, pause, update, tell)
	report(b, notices, "notice")
	report(b, tells, "tell")
	b.ReportMetric(float64(percentile(notices, 50))/float64(percentile(tells, 50)), "x-p50")
}

// BenchmarkReadUnderLoad measures a local read of one member while four goroutines update it
// without a pause.
func BenchmarkReadUnderLoad(b *testing.B) {
	l := newLoopback(b, 2)
	l.start(2)
	ctx, key := context.Background(), distributeddata.NewKey("counter", crdt.PNCounter{})
	stop, writes := make(chan struct{}), 0
	var mu sync.Mutex
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					mu.Lock()
					writes += n
					mu.Unlock()
					return
				default:
				}
				_, err := key.Update(ctx, l.dds[0], increment, distributeddata.Local)
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	read := func() {
		if _, err := key.Get(ctx, l.dds[0]); err != nil {
			b.Error(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(
		time.Millisecond) {
		if _, err := key.Get(ctx, l.dds[0]); err == nil {
			break
		}
	}
	began := time.Now()
	reads, _ := inTurn(b, 0, read, func() { time.Sleep(100 * time.Microsecond) })
	close(stop)
	writers.Wait()
	report(b, reads, "read")
	b.ReportMetric(float64(percentile(reads, 99).Nanoseconds()), "ns-p99-read")
	b.ReportMetric(float64(writes)/time.Since(began).Seconds(), "writes/s")
}

// inTurn calls both functions in turn, after a pause, and returns how long each call took.
func inTurn(b *testing.B, pause time.Duration, one, other func()) (ones, others []time.Duration) {
	for range 100 {
		one()
		other()
	}
	for b.Loop() {
		time.Sleep(pause)
		began := time.Now()
		one()
		between := time.Now()
		other()
		ones, others = append(ones, between.Sub(began)), append(others, time.Since(between))
	}
	b.ReportMetric(0, "ns/op")
	return ones, others
}

func report(b *testing.B, took []time.Duration, what string) {
	b.ReportMetric(float64(percentile(took, 50).Nanoseconds()), "ns-p50-"+what)
}

func increment(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }
