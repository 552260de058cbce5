// Package loopback measures replication between members in one process over real connections.
package loopback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/node"
)

// loopback is a set of members in this process that communicate over real connections.
type loopback struct {
	b       *testing.B
	ports   []int
	hosts   []string
	systems []*actor.ActorSystem
	dds     []*distributeddata.Replicator
	cfg     distributeddata.Config // of all; start sets MinMembers
}

// newLoopback reserves the ports of n members.
func newLoopback(b *testing.B, n int) *loopback {
	b.Helper()
	l := &loopback{b: b, ports: ports.Free(b, n)}
	for _, p := range l.ports {
		l.hosts = append(l.hosts, fmt.Sprintf("127.0.0.1:%d", p))
	}
	return l
}

// start starts n more members, and waits until they are ready.
func (l *loopback) start(n int) {
	l.b.Helper()
	b := l.b
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	first := len(l.dds)
	for i := first; i < first+n; i++ {
		system := measure.System()
		rc, err := node.Remote(node.Config{})
		if err != nil {
			b.Fatal(err)
		}
		c := cluster.New(system,
			node.Cluster("loopback", automanaged.NewWithConfig(200*time.Millisecond, l.ports[i],
				l.hosts...), rc))
		l.cfg.MinMembers = min(n, 2)
		dd, err := distributeddata.New(system, l.cfg)
		if err != nil {
			b.Fatal(err)
		}
		l.systems, l.dds = append(l.systems, system), append(l.dds, dd)
		if err := node.Start(ctx, c); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = node.Shutdown(ctx, c)
		})
	}
	for _, dd := range l.dds[first:] {
		if err := dd.Ready(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdates sends updates without waiting for answers to one of three members over real
// connections, and waits until both others have applied all of them.
func BenchmarkUpdates(b *testing.B) {
	const updates = 20_000
	ctx := context.Background()
	l := newLoopback(b, 3)
	l.start(3)
	dds := l.dds
	run := func(name string, update func(round, i int) any,
		there func(dd *distributeddata.Replicator, round int) bool) {
		round := 0
		b.Run(name+"/replicas=3", func(b *testing.B) {
			for b.Loop() {
				round++
				for i := range updates {
					l.systems[0].Root.Send(dds[0].PID(), update(round, i))
				}
				for _, dd := range dds[1:] {
					for !there(dd, round) {
						time.Sleep(200 * time.Microsecond)
					}
				}
			}
			b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
		})
	}
	counter := distributeddata.NewKey("counter", crdt.GCounter{})
	inc := &distributeddata.Update[crdt.GCounter]{Key: counter, At: distributeddata.Local,
		Modify: func(w *crdt.Writer,
			v *crdt.GCounter) error {
			v.Add(w, 1)
			return nil
		}}
	base := uint64(0)
	run("keys=1/type=counter", func(int, int) any {
		return inc
	}, func(dd *distributeddata.Replicator, round int) bool {
		v, _ := counter.Get(ctx, dd)
		return v.Value() >= base+uint64(round)*updates
	})
	names := make([]distributeddata.Key[crdt.ORSet[string]], 100)
	for i := range names {
		names[i] = distributeddata.NewKey(fmt.Sprintf("set-%03d", i), crdt.ORSet[string]{})
	}
	run("keys=100/type=set", func(round, i int) any {
		return &distributeddata.Update[crdt.ORSet[string]]{Key: names[i%100],
			At: distributeddata.Local,
			Modify: func(w *crdt.Writer, v *crdt.ORSet[string]) error {
				v.Add(w, fmt.Sprintf("element-%04d", i%1000))
				if i == updates-1 {
					v.Add(w, fmt.Sprintf("last of %d", round))
				}
				return nil
			}}
	}, func(dd *distributeddata.Replicator, round int) bool {
		v, _ := names[99].Get(ctx, dd)
		return v.Contains(fmt.Sprintf("last of %d", round))
	})
}

// BenchmarkJoin adds a third member to two that hold 100,000 registers of 1 kB, while a client
// updates one of them. It measures the time until the member is ready, and the latency of the
// client's updates before and meanwhile.
func BenchmarkJoin(b *testing.B) {
	const keys, size = 100_000, 1000
	ctx := context.Background()
	key := func(i int) distributeddata.Key[crdt.LWWRegister[string]] {
		return distributeddata.NewKey(fmt.Sprintf("key-%06d", i), crdt.LWWRegister[string]{})
	}
	value := strings.Repeat("v", size)
	update := func(dd *distributeddata.Replicator, i int) {
		_, err := key(i).Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWRegister[string]) error {
			v.Set(w, value)
			return nil
		}, distributeddata.Local)
		if err != nil {
			b.Fatal(err)
		}
	}
	var joins, calm, busy []time.Duration
	for b.Loop() {
		l := newLoopback(b, 3)
		l.start(2)
		for i := range keys {
			update(l.dds[i%2], i)
		}
		time.Sleep(3 * time.Second) // time for the others to receive all of it
		watch := func(d time.Duration, stop <-chan struct{}) (took []time.Duration) {
			for begin, i := time.Now(), 0; ; i++ {
				select {
				case <-stop:
					return took
				default:
				}
				if d > 0 && time.Since(begin) > d {
					return took
				}
				t := time.Now()
				update(l.dds[0], i%keys)
				took = append(took, time.Since(t))
				time.Sleep(time.Millisecond)
			}
		}
		calm = append(calm, watch(3*time.Second, nil)...)
		stop, stopped := make(chan struct{}), make(chan []time.Duration)
		go func() { stopped <- watch(0, stop) }()
		begin := time.Now()
		l.start(1)
		for l.dds[2].Status().Keys < keys {
			time.Sleep(5 * time.Millisecond)
		}
		joins = append(joins, time.Since(begin))
		close(stop)
		busy = append(busy, <-stopped...)
	}
	b.ReportMetric(percentile(joins, 50).Seconds(), "s-to-join")
	b.ReportMetric(float64(percentile(calm, 99).Microseconds()), "µs-p99-calm")
	b.ReportMetric(float64(percentile(busy, 99).Microseconds()), "µs-p99-meanwhile")
	b.ReportMetric(float64(percentile(busy, 100).Microseconds()), "µs-max-meanwhile")
}

func percentile(ds []time.Duration, p int) time.Duration {
	slices.Sort(ds)
	return ds[(len(ds)-1)*p/100]
}
