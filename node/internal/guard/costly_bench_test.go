//go:build unix

package guard

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/stranger"
)

// BenchmarkCostly shows what messages of a mebibyte from a member take that are made to take much.
func BenchmarkCostly(b *testing.B) { receiving(b, trusting(), costly(1<<20)) }

// BenchmarkCostliest shows what the largest batches take that are accepted from a stranger.
func BenchmarkCostliest(b *testing.B) {
	all := map[string][]byte{}
	for name, m := range costliest() {
		all[name] = mustMarshal(stranger.Send(stranger.Batch("127.0.0.1:8", "x", m)))
	}
	all["pieces"] = pieces(90, maxStrangeFields/30)
	receiving(b, quiet(), all)
}

// receiving reports the processor time of this process, and with it that of garbage collection.
func receiving(b *testing.B, p *Process, all map[string][]byte) {
	g, err := New(Config{Public: []string{"x"}}, p)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(all[name])))
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				receiveAll(g, all[name])
			}
			used := processorTime(b) - before
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
