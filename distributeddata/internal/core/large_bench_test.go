//go:build unix

package core

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// BenchmarkLarge measures the processor time of one large update at its replica and at the two
// others, and the bytes sent. It fails if an element costs the replica more than it may.
func BenchmarkLarge(b *testing.B) {
	for _, n := range []int{5000, 50_000, 500_000} {
		for _, kind := range []struct {
			name   string
			most   time.Duration // for each element
			modify func(*history.Txn) error
		}{
			{"delete", 400 * time.Nanosecond, func(t *history.Txn) error {
				t.Clear("set")
				return nil
			}},
			{"clear", 250 * time.Nanosecond, clearSet},
			{"keys", 20 * time.Microsecond, func(t *history.Txn) error {
				for i := range n {
					if err := perform(t, []op{count(fmt.Sprint("c", i), "k", 1)}); err != nil {
						return err
					}
				}
				return nil
			}},
		} {
			b.Run(fmt.Sprintf("%s/n=%d", kind.name, n), func(b *testing.B) {
				if own := benchLarge(b, n, kind.modify); own > kind.most*time.Duration(n) {
					b.Errorf("%v, at most %v for each element", own, kind.most)
				}
			})
		}
	}
}

func benchLarge(b *testing.B, n int, modify func(*history.Txn) error) time.Duration {
	var own, others time.Duration
	bytes := 0
	for b.Loop() {
		p := newPump(3)
		p.update(0, func(t *history.Txn) error { return addMany(t, n) })
		p.pass(10 * time.Second)
		runtime.GC()
		clear(p.of)
		at := cpuTime()
		p.update(0, modify)
		p.take(0, p.cores[0].Step(p.now, Wake{}))
		own += cpuTime() - at
		at = cpuTime()
		p.pass(5 * time.Second)
		others += cpuTime() - at
		bytes += p.all().bytes
		if !p.cores[1].Seen().Equal(p.cores[0].Seen()) {
			b.Fatal("the members differ")
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own.Seconds()*1000/float64(b.N), "own-cpu-ms")
	b.ReportMetric(others.Seconds()*1000/float64(b.N), "others-cpu-ms")
	b.ReportMetric(float64(bytes)/float64(b.N), "B")
	return own / time.Duration(b.N)
}
