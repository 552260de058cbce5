//go:build unix

package core

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/hosted"
	"github.com/concord-go/concord/internal/wire"
)

// pump is a few replicas and a network without delay; a message is lost with probability loss.
type pump struct {
	numbered
	box  []mail
	loss float64
}

func newPump(n int) *pump {
	p := &pump{numbered: newNumbered(1, 2)}
	for range n {
		p.add()
	}
	p.meet()
	return p
}

func (p *pump) add() { p.cores = append(p.cores, p.core()) }

func (p *pump) meet() {
	p.introduce()
	p.pass(3 * time.Second)
}

// introduce gives every replica the view of all, and delivers nothing.
func (p *pump) introduce() {
	for i, c := range p.cores {
		p.take(i, c.Step(p.now, View{Others: p.others(i)}))
	}
}

func (p *pump) take(i int, effects []Effect) {
	for _, e := range effects {
		if s, ok := e.(Send); ok {
			p.count(s)
			if (p.loss == 0 || p.rand.Float64() >= p.loss) &&
				(p.cut == nil || !p.cut(i, number(s.Member))) {
				p.box = append(p.box, mail{from: fmt.Sprint(i), to: s.Member,
					replica: p.cores[i].Replica(), send: s})
			}
		}
	}
}

// number returns the index of a member.
func number(member string) int {
	i, err := strconv.Atoi(member)
	if err != nil {
		panic(err)
	}
	return i
}

func (p *pump) deliver() {
	for len(p.box) > 0 {
		m := p.box[0]
		p.box = p.box[1:]
		to := number(m.to)
		p.take(to, p.cores[to].Step(p.now, Receive{Member: m.from, From: m.replica, To: m.send.To,
			Manifest: m.send.Manifest, Payload: m.send.Payload}))
	}
}

func (p *pump) wake() {
	for i, c := range p.cores {
		p.take(i, c.Step(p.now, Wake{}))
	}
	p.deliver()
}

// pass advances the time in steps of 100 ms.
func (p *pump) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		p.now = p.now.Add(100 * time.Millisecond)
		p.wake()
	}
}

func (p *pump) update(i int, modify func(*history.Txn) error) {
	p.take(i, p.cores[i].Step(p.now, Update{Modify: modify}))
}

// write sets a register with a value of the given size.
func (p *pump) write(i int, key, value string) {
	p.update(i, func(t *history.Txn) error { return setRegister(t, key, value) })
}

func setRegister(t *history.Txn, key, value string) error {
	w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
	defer end()
	return edit(t, w, key, crdt.LWWRegister[string]{}, func(v *crdt.LWWRegister[string]) {
		v.Set(w, value)
	})
}

func (p *pump) put(i int, key, e string) {
	p.update(i, func(t *history.Txn) error {
		w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
		defer end()
		return edit(t, w, key, set{}, func(v *set) { v.Add(w, e) })
	})
}

func (p *pump) fill(keys, size int) {
	value := strings.Repeat("v", size)
	for i := range keys {
		p.write(i%len(p.cores), fmt.Sprintf("key-%07d", i), value)
		if i%100 == 0 {
			p.wake()
		}
	}
	p.pass(3 * time.Second)
	clear(p.of)
}

// BenchmarkInSync shows that the traffic of a pair of replicas in sync does not depend on what they
// hold.
func BenchmarkInSync(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			p := newPump(3)
			p.fill(keys, 20)
			for b.Loop() {
				clear(p.of)
				p.pass(10 * time.Second)
			}
			b.ReportMetric(float64(p.all().bytes)/10/3, "B/s/pair")
		})
	}
}

// BenchmarkLocate measures the bytes needed to find which of 100,000 keys differ when no log says
// so, without the data.
func BenchmarkLocate(b *testing.B) {
	for _, differing := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("keys=100000/differing=%d", differing), func(b *testing.B) {
			p := newPump(2)
			p.fill(100_000, 1)
			n := 0
			for b.Loop() {
				p.cores[0].Step(p.now, View{}) // without other members
				for range differing {
					n++
					p.write(0, fmt.Sprintf("key-%07d", p.rand.IntN(100_000)), fmt.Sprint(n))
				}
				p.cores[0].push() // no member receives it
				cutLog(p.cores[0])
				p.box = nil
				clear(p.of)
				p.meet()
				if !p.equal() || p.cores[1].stats.Compared == 0 {
					b.Fatal("not equal")
				}
			}
			asked := p.of[wire.ReplicatorCells].bytes + p.of[wire.ReplicatorCompare].bytes
			b.ReportMetric(float64(asked), "B")
			b.ReportMetric(float64(p.of[wire.ReplicatorPart].bytes), "B/answer")
		})
	}
}

// BenchmarkDeltaTraffic measures what is sent for 3,000 adds to 30 sets at 3 replicas, batched,
// relative to sending each event once to each of the others.
func BenchmarkDeltaTraffic(b *testing.B) {
	for _, c := range []struct {
		burst int
		loss  float64
	}{{1, 0}, {1, 0.05}, {10, 0}, {10, 0.05}} {
		b.Run(fmt.Sprintf("replicas=3/burst=%d/loss=%v", c.burst, c.loss), func(b *testing.B) {
			ratio := 0.0
			for b.Loop() {
				ratio = deltaTraffic(b, c.burst, c.loss)
			}
			b.ReportMetric(ratio, "x-optimum")
		})
	}
}

func deltaTraffic(b *testing.B, burst int, loss float64) float64 {
	p := newPump(3)
	p.loss = loss
	clear(p.of)
	best := 0
	for i := range 3000 {
		p.put(i/burst%3, fmt.Sprintf("key-%03d", p.rand.IntN(30)), fmt.Sprintf("element-%05d", i))
		c := p.cores[i/burst%3]
		c.end() // a separate event for each
		own, _ := c.history.Events(c.Replica(), c.history.Own())
		w := encoder{t: replicasOf(c.Seen())}
		ev, _ := w.event(own[0], c.Keys(), bookmark{}, 1<<30)
		best += 2 * len(ev)
		if i%burst == burst-1 {
			p.now = p.now.Add(time.Duration(p.rand.IntN(20)) * time.Millisecond)
			p.wake()
		}
	}
	p.pass(10 * time.Second)
	if !p.equal() {
		b.Fatal("not equal")
	}
	sent := 0
	for _, m := range []wire.Manifest{wire.ReplicatorPush, wire.ReplicatorPart,
		wire.ReplicatorRequest, wire.ReplicatorMore} {
		sent += p.of[m].bytes
	}
	return float64(sent) / float64(best)
}

// BenchmarkJoin measures the join of an empty replica: the work of both sides, without a network.
func BenchmarkJoin(b *testing.B) {
	for _, keys := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d/bytes=1000", keys), func(b *testing.B) {
			p := newPump(2)
			p.fill(keys, 1000)
			cutLog(p.cores[0])
			cutLog(p.cores[1])
			for b.Loop() {
				p.cores = p.cores[:2]
				p.add()
				for i := range p.cores {
					p.cores[i].peers = nil
				}
				p.meet()
				for !p.equal() {
					p.pass(time.Second)
				}
			}
		})
	}
}

// BenchmarkMemory measures the total memory per key of one of three replicas.
func BenchmarkMemory(b *testing.B) {
	for _, keys := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d/bytes=100", keys), func(b *testing.B) {
			perKey := 0.0
			for b.Loop() {
				before := heap()
				p := newPump(1)
				value := strings.Repeat("v", 100)
				for i := range keys {
					p.write(0, fmt.Sprintf("key-%07d", i), value)
				}
				p.pass(2 * time.Second)
				perKey = float64(heap()-before) / float64(keys)
				runtime.KeepAlive(p)
			}
			b.ReportMetric(perKey, "B/key")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkUpdates measures bursts of updates at one of three replicas, applied at both others: the
// work of all three cores.
func BenchmarkUpdates(b *testing.B) {
	counter := func(p *pump, _ int) {
		p.update(0, func(t *history.Txn) error {
			w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
			defer end()
			return edit(t, w, "counter", crdt.GCounter{}, func(v *crdt.GCounter) { v.Add(w, 1) })
		})
	}
	names, elements := make([]string, 100), make([]string, 1000)
	for i := range elements {
		names[i%100], elements[i] = fmt.Sprintf("key-%03d", i%100), fmt.Sprintf("element-%03d", i)
	}
	add := func(p *pump, i int) { p.put(0, names[i%100], elements[i%1000]) }
	for _, of := range []struct {
		name   string
		update func(p *pump, i int)
	}{{"type=counter/keys=1", counter}, {"type=set/keys=100", add}} {
		for _, burst := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/replicas=3/burst=%d", of.name, burst), func(b *testing.B) {
				b.ReportAllocs()
				p := newPump(3)
				i, cpu := 0, cpuTime()
				for b.Loop() {
					of.update(p, i)
					if i++; i%burst == 0 {
						p.wake()
					}
					if i%1000 == 0 {
						p.now = p.now.Add(100 * time.Millisecond)
					}
				}
				b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(i), "cpu-ns/op")
			})
		}
	}
}

// cpuTime returns the processor time that this process has used. On a busy machine it says more
// than wall-clock time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChurn shows that adds and removes leave nothing behind: it measures the memory of both
// replicas, ten seconds after the last.
func BenchmarkChurn(b *testing.B) {
	const cycles = 1_000_000
	b.Run(fmt.Sprintf("cycles=%d", cycles), func(b *testing.B) {
		grown := 0.0
		for b.Loop() {
			p := newPump(2)
			p.put(0, "s", "kept")
			p.pass(3 * time.Second)
			fresh := heap()
			for i := range cycles {
				e := fmt.Sprint("e", i%50)
				for _, kind := range []opKind2{opAdd, opRemove} {
					p.update(i%2, func(t *history.Txn) error {
						return perform(t, []op{{kind: kind, key: "s", sub: e}})
					})
					p.cores[i%2].end() // each is an event
				}
				if i%100 == 0 {
					p.pass(100 * time.Millisecond)
				}
			}
			p.pass(10 * time.Second)
			grown = float64(int64(heap())-int64(fresh)) / float64(fresh)
			runtime.KeepAlive(p)
		}
		b.ReportMetric(100*grown, "%grown")
	})
}
