//go:build unix

package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/hosted"
	"github.com/concord-go/concord/internal/wire"
)

// newAged returns three replicas in sync after the given number of past incarnations.
func newAged(incarnations int) *pump {
	p := newPump(3)
	v := departed(incarnations)
	for _, c := range p.cores {
		joins(c, history.State{Seen: v})
	}
	p.pass(5 * time.Second)
	for i := range 300 {
		p.put(i%3, fmt.Sprintf("key-%03d", i%100), fmt.Sprint(i))
		p.wake()
	}
	p.pass(5 * time.Second)
	clear(p.of)
	return p
}

var ages = []int{0, 100, 10_000, 100_000, 1_000_000}

// BenchmarkAge measures what the past of a cluster costs its present.
func BenchmarkAge(b *testing.B) {
	for _, n := range ages {
		b.Run(fmt.Sprintf("incarnations=%d", n), func(b *testing.B) {
			p := newAged(n)
			if !p.equal() {
				b.Skip("replication has stopped")
			}
			b.Run("update", func(b *testing.B) { benchmarkAgedUpdate(b, p, false) })
			b.Run("push", func(b *testing.B) { benchmarkAgedUpdate(b, p, true) })
			b.Run("delete", func(b *testing.B) { benchmarkAgedDelete(b, p) })
			b.Run("idle", func(b *testing.B) { benchmarkAgedIdle(b, p) })
			b.Run("beat", func(b *testing.B) { benchmarkAgedBeat(b, p) })
			b.Run("encode", func(b *testing.B) { benchmarkAgedEncode(b, p) })
			b.Run("join", func(b *testing.B) { benchmarkAgedJoin(b, p) })
		})
	}
}

// benchmarkAgedUpdate measures single updates at one replica: their cost there, or at a replica
// that receives their pushes.
func benchmarkAgedUpdate(b *testing.B, p *pump, received bool) {
	var spent time.Duration
	i, at := 0, cpuTime()
	timed := func(f func()) {
		at = cpuTime()
		f()
		spent += cpuTime() - at
	}
	for b.Loop() {
		const burst = 200
		var pushes []Send
		update := func() {
			for range burst {
				key, element := fmt.Sprintf("key-%03d", i%100), fmt.Sprint("e", i%1000)
				for _, ev := range []Event{Update{Modify: func(t *history.Txn) error {
					w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
					defer end()
					return edit(t, w, key, set{}, func(v *set) { v.Add(w, element) })
				}}, Wake{}} {
					for _, e := range p.cores[0].Step(p.now, ev) {
						if s, ok := e.(Send); ok {
							pushes = append(pushes, s)
						}
					}
				}
				i++
			}
		}
		receive := func() {
			for _, s := range pushes {
				p.take(number(s.Member), p.cores[number(s.Member)].Step(p.now,
					Receive{Member: "0", From: p.cores[0].Replica(), To: s.To, Manifest: s.Manifest,
						Payload: s.Payload}))
			}
		}
		if received {
			update()
			timed(receive)
		} else {
			timed(update)
			receive()
		}
		p.deliver()
		p.now = p.now.Add(10 * time.Millisecond)
	}
	if received {
		i *= 2
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(i), "cpu-ns/update")
}

func benchmarkAgedDelete(b *testing.B, p *pump) {
	size, deletes := 0, 0
	for b.Loop() {
		key := fmt.Sprintf("key-%03d", deletes%100)
		p.put(0, key, "again")
		p.wake()
		clear(p.of)
		p.update(0, func(t *history.Txn) error { t.Clear(key); return nil })
		p.wake()
		size, deletes = size+p.of[wire.ReplicatorPush].bytes/2, deletes+1
	}
	b.ReportMetric(float64(size)/float64(deletes), "B/push")
}

func benchmarkAgedIdle(b *testing.B, p *pump) {
	seconds := 0
	p.pass(5 * time.Second)
	clear(p.of)
	for b.Loop() {
		p.pass(10 * time.Second)
		seconds += 10
	}
	b.ReportMetric(float64(p.all().bytes)/float64(seconds), "B/s")
}

// benchmarkAgedBeat measures full heartbeats, as sent after an update that was pushed to no member.
func benchmarkAgedBeat(b *testing.B, p *pump) {
	size, beats, cpu := 0, 0, cpuTime()
	for b.Loop() {
		c := p.cores[0]
		for _, o := range c.peers {
			o.toldOf = 0
		}
		for _, e := range c.Step(c.rhythm.at, Wake{}) {
			if s, ok := e.(Send); ok && s.Manifest == wire.ReplicatorBeat {
				size, beats = size+len(s.Payload), beats+1
			}
		}
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(beats), "cpu-ns/beat")
	b.ReportMetric(float64(size)/float64(beats), "B/beat")
}

func benchmarkAgedEncode(b *testing.B, p *pump) {
	size := 0
	p.put(0, "encoded", "element")
	p.wake()
	for b.Loop() {
		h, _ := p.cores[0].Keys().Get("encoded")
		v := set{}
		err := hosted.Load(&v, h.Store, p.cores[0].Seen())
		if err == nil {
			var out []byte
			out, err = v.AppendBinary(nil)
			size = len(out)
		}
		if err != nil {
			b.Skip(err)
		}
	}
	b.ReportMetric(float64(size), "B/value")
}

// benchmarkAgedJoin measures the join of an empty member until it is ready, with a millisecond
// between a message and its answer.
func benchmarkAgedJoin(b *testing.B, p *pump) {
	var took time.Duration
	joins, largest, grown := 0, 0, uint64(0)
	for b.Loop() {
		p.cores = p.cores[:3]
		before := heap()
		p.add()
		began := p.now
		for i := range p.cores {
			p.cores[i].peers = nil
		}
		clear(p.of)
		start := cpuTime()
		p.introduce()
		c := p.cores[3]
		for !c.Ready() && p.now.Sub(began) < time.Minute {
			box := p.box
			p.box = nil
			p.now = p.now.Add(time.Millisecond)
			for _, m := range box {
				largest = max(largest, len(m.send.Payload))
				to := number(m.to)
				p.take(to, p.cores[to].Step(p.now, Receive{Member: m.from, From: m.replica,
					To: m.send.To, Manifest: m.send.Manifest, Payload: m.send.Payload}))
			}
			for i, c := range p.cores {
				if !p.now.Before(c.NextWake()) {
					p.take(i, c.Step(p.now, Wake{}))
				}
			}
		}
		if !c.Ready() {
			b.Skip("never ready")
		}
		took, joins = took+p.now.Sub(began)+cpuTime()-start, joins+1
		p.deliver()
		if joins == 1 { // later ones replace another member
			grown = heap() - before
		}
	}
	if n := p.cores[3].Seen().Len(); n > 1000 {
		b.ReportMetric(float64(grown)/float64(n), "B-memory/incarnation")
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(joins), "ms/join")
	b.ReportMetric(float64(largest), "B/largest-message")
	b.ReportMetric(float64(p.all().bytes), "B/join")
}
