// Package loopback measures replication between members in one process over real connections.
package loopback

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
)

// loopback starts n members in this process that talk over real connections.
func loopback(b *testing.B, n int) (systems []*actor.ActorSystem, dds []*distributeddata.Replicator) {
	b.Helper()
	ports := freePorts(b, n)
	hosts := make([]string, n)
	for i, p := range ports {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	b.Cleanup(cancel)
	for i := range n {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		}))
		rc, err := node.Remote(node.Config{})
		if err != nil {
			b.Fatal(err)
		}
		c := cluster.New(system, node.Cluster("loopback", automanaged.NewWithConfig(200*time.Millisecond, ports[i], hosts...), rc))
		dd, err := distributeddata.New(system, distributeddata.Config{MinMembers: n})
		if err != nil {
			b.Fatal(err)
		}
		systems, dds = append(systems, system), append(dds, dd)
		if err := node.Start(ctx, c); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = node.Shutdown(ctx, c)
		})
	}
	for _, dd := range dds {
		if err := dd.Ready(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return systems, dds
}

func freePorts(b *testing.B, n int) (ports []int) {
	b.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// Updates that nobody waits for, told to one of three members over real connections, until both others
// have applied all of them.
func BenchmarkLoopback(b *testing.B) {
	const updates = 20_000
	ctx := context.Background()
	systems, dds := loopback(b, 3)
	run := func(name string, update func(round, i int) any, there func(dd *distributeddata.Replicator, round int) bool) {
		round := 0
		b.Run(name+"/replicas=3", func(b *testing.B) {
			for b.Loop() {
				round++
				for i := range updates {
					systems[0].Root.Send(dds[0].PID(), update(round, i))
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
	inc := &distributeddata.Update[crdt.GCounter]{Key: counter, Modify: func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }}
	base := uint64(0)
	run("keys=1/type=counter", func(int, int) any { return inc }, func(dd *distributeddata.Replicator, round int) bool {
		v, _ := counter.Get(ctx, dd)
		return v.Value() >= base+uint64(round)*updates
	})
	names := make([]distributeddata.Key[crdt.ORSet[string]], 100)
	for i := range names {
		names[i] = distributeddata.NewKey(fmt.Sprintf("set-%03d", i), crdt.ORSet[string]{})
	}
	run("keys=100/type=set", func(round, i int) any {
		return &distributeddata.Update[crdt.ORSet[string]]{Key: names[i%100], Modify: func(w *crdt.Writer, v *crdt.ORSet[string]) error {
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
