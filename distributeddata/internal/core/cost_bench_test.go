//go:build unix

package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/hosted"
)

// BenchmarkOneUpdate measures what one update costs three replicas together, each pushed alone, and
// the bytes sent.
func BenchmarkOneUpdate(b *testing.B) {
	kinds := map[string]func(t *history.Txn, i int) error{
		"counter": func(t *history.Txn, _ int) error {
			w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
			defer end()
			return edit(t, w, "counter", crdt.GCounter{}, func(v *crdt.GCounter) { v.Add(w, 1) })
		},
		"set": func(t *history.Txn, i int) error {
			w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
			defer end()
			return edit(t, w, setNames[i%100], set{}, func(v *set) {
				v.Add(w, setElements[i%1000])
			})
		},
	}
	for _, kind := range []string{"counter", "set"} {
		for _, level := range []Level{{}, majority} {
			name := "local"
			if level != (Level{}) {
				name = "majority"
			}
			b.Run(fmt.Sprintf("%s/%s", kind, name), func(b *testing.B) {
				benchOneUpdate(b, kinds[kind], level)
			})
		}
	}
}

var setNames, setElements = func() (names, elements []string) {
	for i := range 1000 {
		elements = append(elements, fmt.Sprintf("element-%03d", i))
	}
	for i := range 100 {
		names = append(names, fmt.Sprintf("key-%03d", i))
	}
	return names, elements
}()

func benchOneUpdate(b *testing.B, modify func(*history.Txn, int) error, level Level) {
	p := newPump(3)
	p.pass(5 * time.Second)
	clear(p.of)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	for i := range b.N {
		p.take(0, p.cores[0].Step(p.now, Update{ID: uint64(i + 1), Level: level,
			Deadline: p.now.Add(time.Hour), Modify: func(t *history.Txn) error {
				return modify(t, i)
			}}))
		p.take(0, p.cores[0].Step(p.now, Wake{}))
		p.deliver()
		if i%1000 == 999 {
			p.now = p.now.Add(100 * time.Millisecond)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(p.all().bytes)/float64(b.N), "sent-B/op")
}
