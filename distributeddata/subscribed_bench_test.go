//go:build unix

package distributeddata_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// BenchmarkSubscribed changes n keys of one subscriber in one transaction. It measures the cost per
// key until all notices are sent, the longest wait of an update and of a local read meanwhile, and
// the cost of ending a subscription.
func BenchmarkSubscribed(b *testing.B) {
	for _, n := range []int{400, 4000, 40_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) { benchSubscribed(b, n) })
	}
}

func benchSubscribed(b *testing.B, n int) {
	system, dd, stop := startMember()
	defer stop()
	ctx := context.Background()
	keys := make([]distributeddata.Key[crdt.GCounter], n)
	for i := range keys {
		keys[i] = distributeddata.NewKey(fmt.Sprintf("key-%06d", i), crdt.GCounter{})
	}
	change := func() {
		err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			for _, k := range keys {
				k.In(tx).Add(tx.Writer, 1)
			}
			return nil
		}, local)
		if err != nil {
			b.Error(err)
		}
	}
	bump := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
	beside := distributeddata.NewKey("beside", crdt.GCounter{})
	if _, err := beside.Update(ctx, dd, bump, local); err != nil {
		b.Fatal(err)
	}
	var told atomic.Int64
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*distributeddata.Changed[crdt.GCounter]); ok {
			told.Add(1)
		}
	}))
	stops := make([]func(), n)
	for i, k := range keys {
		stops[i] = k.Subscribe(dd, pid, nil)
	}
	change()
	for told.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	var changing, spent, update, read time.Duration
	runs := 0
	for b.Loop() {
		told.Store(0)
		before, began := used(), time.Now()
		var watch sync.WaitGroup
		changed := make(chan struct{})
		watch.Go(func() { change(); close(changed) })
		for done := false; !done; {
			select {
			case <-changed:
				done = true
			default:
			}
			at := time.Now()
			if _, err := beside.Get(ctx, dd); err != nil {
				b.Fatal(err)
			}
			read = max(read, time.Since(at))
			time.Sleep(100 * time.Microsecond)
		}
		watch.Wait()
		changing = max(changing, time.Since(began))
		for told.Load() < int64(n) {
			at := time.Now()
			if _, err := beside.Update(ctx, dd, bump, local); err != nil {
				b.Fatal(err)
			}
			update = max(update, time.Since(at))
			time.Sleep(time.Millisecond)
		}
		spent += used() - before
		runs++
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(runs*n), "cpu-ns/key")
	b.ReportMetric(float64(changing.Microseconds()), "µs-transaction")
	b.ReportMetric(float64(update.Microseconds()), "µs-next-update")
	b.ReportMetric(float64(read.Microseconds()), "µs-local-read")
	b.ReportMetric(benchUnsubscribed(b, n, func() {
		for i, k := range keys {
			stops[i] = k.Subscribe(dd, pid, nil)
		}
	}, func() {
		for _, stop := range stops {
			stop()
		}
	}, func() {
		if _, err := beside.Update(ctx, dd, bump, local); err != nil {
			b.Fatal(err)
		}
	}), "cpu-ns/unsubscribe")
}

// benchUnsubscribed returns the processor time of ending one of n subscriptions; the number of
// ended ones is the same for each n. handled returns when everything sent has been handled.
func benchUnsubscribed(b *testing.B, n int, subscribe, unsubscribe, handled func()) float64 {
	var spent time.Duration
	ended := 0
	for ended < 40_000 {
		subscribe()
		handled()
		runtime.GC()
		before := used()
		unsubscribe()
		handled()
		spent += used() - before
		ended += n
	}
	return float64(spent.Nanoseconds()) / float64(ended)
}

// used returns the processor time that this process has used.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
