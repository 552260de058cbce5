//go:build unix

package core

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// BenchmarkCalls measures what n concurrent majority calls cost three replicas together.
func BenchmarkCalls(b *testing.B) {
	for _, n := range []int{100, 1000, 4000, 10_000, 100_000} {
		until := func(p *pump) time.Time { return p.now.Add(time.Hour) }
		b.Run(fmt.Sprintf("reads/calls=%d", n), func(b *testing.B) {
			benchCalls(b, n, func(p *pump, id uint64) Event {
				return Read{ID: id, Level: majority, Deadline: until(p)}
			})
		})
		b.Run(fmt.Sprintf("writes/calls=%d", n), func(b *testing.B) {
			benchCalls(b, n, func(p *pump, id uint64) Event {
				return Update{ID: id, Level: majority, Deadline: until(p),
					Modify: func(t *history.Txn) error {
						return perform(t, []op{add(fmt.Sprint("s", id%1000), "x")})
					}}
			})
		})
		b.Run(fmt.Sprintf("transaction/keys=%d", n), func(b *testing.B) { benchTransaction(b, n) })
	}
}

// benchTransaction changes n existing keys in transactions.
func benchTransaction(b *testing.B, n int) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("c", i*7919%n)
	}
	p := newPump(3)
	transact := func() {
		p.take(0, p.cores[0].Step(p.now, Update{ID: 1, Modify: func(t *history.Txn) error {
			ops := make([]op, 0, n)
			for _, k := range keys {
				ops = append(ops, count(k, "k", 1))
			}
			return perform(t, ops)
		}}))
		p.wake()
	}
	transact()
	runtime.GC()
	changed, before := 0, cpuTime()
	for b.Loop() {
		for done := 0; done < 10_000; done += n { // the same amount of work for each n
			transact()
			changed += n
		}
	}
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(changed), "cpu-ns/key")
}

// benchCalls begins n calls, and delivers messages when all have begun: acknowledgements arrive one
// by one.
func benchCalls(b *testing.B, n int, call func(p *pump, id uint64) Event) {
	p := newPump(3)
	runtime.GC()
	before := cpuTime()
	id := uint64(0)
	for b.Loop() {
		done := 0
		count := func(effects []Effect) {
			for _, e := range effects {
				if d, ok := e.(Done); ok && d.Short == nil {
					done++
				}
			}
			p.take(0, effects)
		}
		for range n {
			id++
			count(p.cores[0].Step(p.now, call(p, id)))
			count(p.cores[0].Step(p.now, Wake{})) // a separate push for each
		}
		for len(p.box) > 0 {
			m := p.box[0]
			p.box = p.box[1:]
			to := number(m.to)
			effects := p.cores[to].Step(p.now, Receive{Member: m.from, From: m.replica,
				To: m.send.To, Manifest: m.send.Manifest, Payload: m.send.Payload})
			if to == 0 {
				count(effects)
			} else {
				p.take(to, effects)
			}
		}
		if p.pass(time.Second); done != n {
			b.Fatalf("%d of %d calls ended well", done, n)
		}
	}
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N*n), "cpu-ns/call")
}
