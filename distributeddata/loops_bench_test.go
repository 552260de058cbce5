//go:build unix

package distributeddata_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// BenchmarkLoops measures the processor time of an update of one key while n loops follow the
// changes of other keys, each its own. It fails if that time grows with the loops.
func BenchmarkLoops(b *testing.B) {
	var first time.Duration
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("loops=%d", n), func(b *testing.B) {
			each := benchLoops(b, n)
			if first == 0 {
				first = each
			}
			if each > 10*first+time.Millisecond {
				b.Errorf("an update costs %v beside %d loops, and %v beside 10", each, n, first)
			}
		})
	}
}

func benchLoops(b *testing.B, n int) time.Duration {
	_, dd, stop := startMember()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	var running atomic.Int64
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	bump := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
	quiet := distributeddata.NewPrefix("quiet-", crdt.GCounter{})
	for i := range n {
		k := quiet.Key(fmt.Sprint(i))
		if _, err := k.Update(ctx, dd, bump, local); err != nil {
			b.Fatal(err)
		}
		loops.Go(func() {
			for range k.Changes(ctx, dd) {
				running.Add(1)
			}
		})
	}
	for running.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // until all of them wait
	beside := distributeddata.NewKey("beside", crdt.GCounter{})
	const updates = 100
	var spent time.Duration
	runs := 0
	for b.Loop() {
		before := used()
		for range updates {
			if _, err := beside.Update(ctx, dd, bump, local); err != nil {
				b.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		spent += used() - before
		runs++
	}
	each := spent / time.Duration(runs*updates)
	b.ReportMetric(float64(each.Microseconds()), "cpu-µs/update")
	b.ReportMetric(0, "ns/op")
	return each
}
