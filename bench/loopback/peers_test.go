//go:build unix

package loopback

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// BenchmarkPeers runs the same workload with Concord and with actors of bare Proto.Actor, which
// hold a number for each key and have no protocol. It uses three members and real connections in
// one process. make bench-peers alternates between the two. Each figure comes with the processor
// time of all three members, the load of the machine, and the number of processors used by others.
func BenchmarkPeers(b *testing.B) {
	b.Run("of=concord", func(b *testing.B) {
		l := newLoopback(b, 3)
		l.start(3)
		l.benchPeer(newConcord(l))
	})
	b.Run("of=bare", func(b *testing.B) {
		l := newLoopback(b, 3)
		l.start(3)
		l.benchPeer(newBare(l))
	})
}

// peer is the system being measured. Messages are sent to target, which answers each.
type peer struct {
	b      *testing.B
	target *actor.PID
	get    func(key int) any
	update func(key int, majority bool) any
	direct func(key int, majority bool) // nil if there are no direct calls
	send   func(key int)                // an update without an answer
	there  func(key int) bool           // reports whether both others have all updates of a key
	sent   func() uint64                // bytes sent by the first member; nil if not counted
}

// benchPeer runs all workloads.
func (l *loopback) benchPeer(p peer) {
	b := p.b
	measure := func(name string, work func(n int)) {
		b.Run(name, func(b *testing.B) {
			bytes := uint64(0)
			if p.sent != nil {
				bytes = p.sent()
			}
			before := look()
			b.ResetTimer()
			work(b.N)
			b.StopTimer()
			look().report(b, before)
			if p.sent != nil {
				b.ReportMetric(float64(p.sent()-bytes)/float64(b.N), "sent-B/op")
			}
		})
	}
	for _, callers := range []int{1, 64, 1000} {
		callerName := fmt.Sprintf("/callers=%d", callers)
		measure("op=get"+callerName, func(n int) { l.ask(p.target, callers, n, func(int) any { return p.get(0) }) })
		measure("op=update"+callerName, func(n int) { l.ask(p.target, callers, n, func(int) any { return p.update(0, false) }) })
	}
	for _, callers := range []int{1, 64} {
		callerName := fmt.Sprintf("/callers=%d", callers)
		measure("op=majority"+callerName, func(n int) { l.ask(p.target, callers, n, func(int) any { return p.update(0, true) }) })
		if p.direct != nil {
			measure("op=direct-update"+callerName, func(n int) { call(callers, n, func() { p.direct(0, false) }) })
			measure("op=direct-majority"+callerName, func(n int) { call(callers, n, func() { p.direct(0, true) }) })
		}
	}
	everywhere := func() {
		for key := range 100 {
			for !p.there(key) {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	measure("op=spread-answered/keys=100/callers=64", func(n int) {
		l.ask(p.target, 64, n, func(i int) any { return p.update(i%100, false) })
		everywhere()
	})
	measure("op=spread/keys=100", func(n int) {
		for i := range n {
			p.send(i % 100)
		}
		everywhere()
	})
}

// ask lets callers actors send n requests in total to target, each one after its previous answer.
func (l *loopback) ask(target *actor.PID, callers, n int, message func(i int) any) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range callers {
		done.Add(1)
		l.systems[0].Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Stopped:
				done.Done()
				return
			case *actor.Stopping:
				return
			}
			if i := int(next.Add(1)) - 1; i < n {
				ctx.Request(target, message(i))
			} else {
				ctx.Stop(ctx.Self())
			}
		}))
	}
	done.Wait()
}

// call lets callers goroutines call f, n times in total.
func call(callers, n int, f func()) {
	var left atomic.Int64
	left.Store(int64(n))
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for left.Add(-1) >= 0 {
				f()
			}
		})
	}
	done.Wait()
}

func newConcord(l *loopback) peer {
	b, dd, ctx := l.b, l.dds[0], context.Background()
	keys := make([]distributeddata.Key[crdt.PNCounter], 100)
	for i := range keys {
		keys[i] = distributeddata.NewKey(fmt.Sprintf("counter-%03d", i), crdt.PNCounter{})
		if _, err := keys[i].Update(ctx, dd, increment, distributeddata.All); err != nil {
			b.Fatal(err)
		}
	}
	level := map[bool]distributeddata.Consistency{true: distributeddata.Majority, false: distributeddata.Local}
	message := func(key int, majority bool) any {
		return &distributeddata.Update[crdt.PNCounter]{Key: keys[key], Modify: increment, At: level[majority]}
	}
	value := func(dd *distributeddata.Replicator, key int) int64 {
		v, _ := keys[key].Get(ctx, dd)
		return v.Value()
	}
	return peer{
		b: b, target: dd.PID(), update: message,
		get: func(key int) any { return &distributeddata.Get[crdt.PNCounter]{Key: keys[key]} },
		direct: func(key int, majority bool) {
			if _, err := keys[key].Update(ctx, dd, increment, level[majority]); err != nil {
				b.Error(err)
			}
		},
		send: func(key int) { l.systems[0].Root.Send(dd.PID(), message(key, false)) },
		there: func(key int) bool {
			res, err := l.systems[0].Root.RequestFuture(dd.PID(), &distributeddata.Get[crdt.PNCounter]{Key: keys[key]}, 5*time.Second).Result()
			if err != nil {
				b.Fatal(err)
			}
			here, _ := res.(*distributeddata.GetResponse[crdt.PNCounter]).Result()
			return value(l.dds[1], key) == here.Value() && value(l.dds[2], key) == here.Value()
		},
		sent: func() (n uint64) {
			for _, t := range dd.Status().Sent {
				n += t.Bytes
			}
			return n
		},
	}
}

func increment(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }

// machine is the processor time used so far.
type machine struct {
	at        time.Time
	own, busy time.Duration
	load      string
}

func look() (m machine) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	m.at, m.own, m.load = time.Now(), time.Duration(u.Utime.Nano()+u.Stime.Nano()), "0"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.load, _, _ = strings.Cut(string(text), " ")
	}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		var user, nice, system int64
		_, _ = fmt.Sscanf(string(text), "cpu %d %d %d", &user, &nice, &system)
		m.busy = time.Duration(user+nice+system) * 10 * time.Millisecond
	}
	return m
}

// report reports the usage since before.
func (m machine) report(b *testing.B, before machine) {
	own := m.own - before.own
	b.ReportMetric(float64(own.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(max(0, float64(m.busy-before.busy-own)/float64(m.at.Sub(before.at))), "others-cpus")
	var load float64
	_, _ = fmt.Sscan(m.load, &load)
	b.ReportMetric(load, "load")
}
