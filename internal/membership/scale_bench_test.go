package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/internal/wire"
	"google.golang.org/protobuf/proto"
)

// BenchmarkMembers measures the membership messages in virtual time: in normal operation, and after
// a join, a crash and a split into halves.
func BenchmarkMembers(b *testing.B) {
	for _, n := range []int{3, 10, 30, 100, 200} {
		var all []found
		sim.Run(b, sim.Seeds{First: 1, Count: 1, Whole: true}, func(s *sim.World) {
			all = said(s, n)
		})
		for _, f := range all {
			b.Run(fmt.Sprintf("members=%d/case=%s", n, f.name), func(b *testing.B) {
				for b.Loop() {
				}
				b.ReportMetric(0, "ns/op")
				for unit, n := range f.metrics {
					b.ReportMetric(n, unit)
				}
			})
		}
	}
}

// found holds the results of one case.
type found struct {
	name    string
	metrics map[string]float64
}

// said plays one cluster.
func said(s *sim.World, n int) []found {
	w := newWorld(s, n+1)
	w.round = time.Second
	messages, bytes, all := 0., 0., float64(n)
	w.Observe(func(_, _ int, msg any) {
		messages++
		if r, ok := msg.(received); ok {
			env, err := encode(wire.Header{Member: r.member, From: r.from, To: r.to}, r.hello)
			if err != nil {
				w.Fail("%v", err)
			}
			bytes += float64(proto.Size(env))
		}
	})
	during := func(d time.Duration) (float64, float64) {
		m, n := messages, bytes
		w.Until(d)
		return (messages - m) / all, (bytes - n) / all
	}
	w.start(n)
	w.Until(60 * time.Second)
	restMsgs, restBytes := during(100 * time.Second)
	restMsgs, restBytes = restMsgs/100, restBytes/100
	out := []found{{"rest", map[string]float64{"msgs/s": restMsgs, "B/s": restBytes}}}
	beyond := func(name string, d time.Duration) {
		m, n := during(d)
		out = append(out, found{name, map[string]float64{"msgs/member": m - restMsgs*d.Seconds(),
			"B/member": n - restBytes*d.Seconds()}})
	}
	w.places[n].start()
	beyond("join", 30*time.Second)
	w.places[n].crash()
	beyond("crash", 30*time.Second)
	w.Until(130 * time.Second) // from now on the lost member is rarely asked
	w.split(sim.Args{Words: []string{strings.Repeat("ab", n/2+1)[:n+1] + "z", "20s"}})
	apart, _ := during(20 * time.Second)
	before, began := messages, w.Elapsed()
	w.Eventually(2*time.Minute, "one view", w.oneView)
	return append(out, found{"split", map[string]float64{
		"msgs/s": apart / 20, "msgs/member": (messages - before) / all,
		"s-to-one-view": (w.Elapsed() - began).Seconds(),
	}})
}
