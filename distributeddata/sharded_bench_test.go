//go:build unix

package distributeddata_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/hosted"
	"github.com/concord-go/concord/internal/simnet"
)

type number = crdt.LWWRegister[int]

// BenchmarkSharded updates random elements of a ShardedMap of n small ones on one member. It
// alternates with updates of an ORMap of 1,000 in one entry, and of the same 1,000 elements of the
// large map again and again. It measures the processor time per update, including garbage
// collection, of each.
//
//	go test ./distributeddata -run '^$' -bench 'Sharded/' -benchtime 20000x -timeout 30m
func BenchmarkSharded(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000, 10_000_000} {
		for _, each := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("elements=%d/shard=%d", n, each), func(b *testing.B) {
				benchSharded(b, n, max(1, n/each))
			})
		}
	}
}

func benchSharded(b *testing.B, n, shards int) {
	_, dd, stop := startMember()
	defer stop()
	ctx := context.Background()
	large := distributeddata.NewShardedMap("large", shards, crdt.ORMap[int, number]{})
	small := distributeddata.NewKey("small", crdt.ORMap[int, number]{})
	fill(b, n, 10_000, func(tx *distributeddata.Tx, i int) {
		large.UpdateIn(tx, i, func(v *number) { v.Set(tx.Writer, i) })
	}, dd)
	fill(b, 1000, 1000, func(tx *distributeddata.Tx, i int) {
		small.In(tx).Update(tx.Writer, i, func(v *number) { v.Set(tx.Writer, i) })
	}, dd)
	rng := rand.New(rand.NewPCG(1, 1))
	set := func(k, to int) error {
		_, err := large.Update(ctx, dd, k, func(w *crdt.Writer, v *number) error {
			v.Set(w, to)
			return nil
		}, local)
		return err
	}
	encode := hosted.Encoder[int](&crdt.ORMap[int, number]{})
	ops := [...]func(k int) error{
		func(k int) error { return set(k%n, k) },
		func(k int) error {
			_, err := small.Update(ctx, dd,
				func(w *crdt.Writer, all *crdt.ORMap[int, number]) error {
					all.Update(w, k%1000, func(v *number) { v.Set(w, k) })
					return nil
				}, local)
			return err
		},
		func(k int) error { return set(k%1000*(n/1000), k) },
		func(k int) error { _, err := large.Get(ctx, dd, k%n); return err },
		func(k int) error { // the same entries, without the map
			enc, err := encode(nil, k%n)
			if err != nil {
				return err
			}
			id := fmt.Sprintf("large#ORMap[int]LWWRegister[int]#%d#%04x", shards,
				xxhash.Sum64(enc)%uint64(shards))
			_, err = distributeddata.NewKey(id, crdt.ORMap[int, number]{}).Update(ctx, dd,
				func(w *crdt.Writer, all *crdt.ORMap[int, number]) error {
					all.Update(w, k%n, func(v *number) { v.Set(w, k) })
					return nil
				}, local)
			return err
		},
	}
	var spent, took [len(ops)]time.Duration
	const batch = 500
	rounds := 0
	runtime.GC()
	b.ResetTimer()
	for b.Loop() {
		if rounds++; rounds%batch != 0 && rounds != b.N {
			continue
		}
		for i, op := range ops {
			before, began := used(), time.Now()
			for range batch {
				if err := op(rng.IntN(1 << 30)); err != nil {
					b.Fatal(err)
				}
			}
			spent[i] += used() - before
			took[i] += time.Since(began)
		}
	}
	b.StopTimer()
	per := func(d time.Duration) float64 {
		return float64(d.Nanoseconds()) / float64((rounds+batch-1)/batch*batch)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(per(spent[0]), "cpu-ns/update")
	b.ReportMetric(per(spent[1]), "cpu-ns/update-of-1000")
	b.ReportMetric(per(took[0]), "wall-ns/update")
	b.ReportMetric(per(took[1]), "wall-ns/update-of-1000")
	b.ReportMetric(per(spent[2]), "cpu-ns/update-of-1000-often")
	b.ReportMetric(per(spent[3]), "cpu-ns/get")
	b.ReportMetric(per(spent[4]), "cpu-ns/update-of-the-entry")
	now, err := large.Of(dd.Snapshot())
	require.NoError(b, err)
	began := time.Now()
	require.Equal(b, n, now.Len())
	b.ReportMetric(float64(time.Since(began).Nanoseconds()), "ns-len")
	b.ReportMetric(heap(), "MiB-heap")
}

// heap returns the size of the reachable heap.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// fill adds n elements, batch of them in one transaction.
func fill(b *testing.B, n, batch int, put func(tx *distributeddata.Tx, i int),
	dd *distributeddata.Replicator) {
	b.Helper()
	for from := 0; from < n; from += batch {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			for i := from; i < min(n, from+batch); i++ {
				put(tx, i)
			}
			return nil
		}, local)
		cancel()
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShardedOnThree updates elements of 1 kB of a ShardedMap at a majority of three members
// in one process, over a network in memory. It measures the processor time of all three per update.
//
//	go test ./distributeddata -run '^$' -bench ShardedOnThree -benchtime 5000x -timeout 30m
func BenchmarkShardedOnThree(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("elements=%d", n), func(b *testing.B) { benchOnThree(b, n) })
	}
}

func benchOnThree(b *testing.B, n int) {
	var all []*distributeddata.Replicator
	c := simnet.NewCluster(simnet.Config{Members: 3, Setup: func(m *simnet.Member) {
		dd, err := distributeddata.New(m.System, distributeddata.Config{MinMembers: 3,
			LogBytes: 64 << 20})
		require.NoError(b, err)
		all = append(all, dd)
	}})
	defer c.Close()
	ctx := context.Background()
	defer func() {
		for _, dd := range all {
			_ = dd.Close(ctx)
		}
	}()
	for _, dd := range all {
		require.NoError(b, dd.Ready(ctx))
	}
	large := distributeddata.NewShardedMap("large", max(1, n/1000), crdt.ORMap[int, register]{})
	text := make([]byte, 1000)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	fill(b, n, 1000, func(tx *distributeddata.Tx, i int) {
		large.UpdateIn(tx, i, func(v *register) { v.Set(tx.Writer, string(text)) })
	}, all[0])
	for i, dd := range all { // until it has arrived
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			now, err := large.Of(dd.Snapshot())
			require.NoError(b, err)
			if now.Len() == n {
				break
			}
			require.Less(b, time.Since(began), 10*time.Minute, i)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	runtime.GC()
	before, began := used(), time.Now()
	b.ResetTimer()
	for b.Loop() {
		_, err := large.Update(ctx, all[rng.IntN(3)], rng.IntN(n),
			func(w *crdt.Writer, v *register) error {
				v.Set(w, string(text))
				return nil
			},
			distributeddata.Majority)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-µs/update")
	b.ReportMetric(float64(time.Since(began).Microseconds())/float64(b.N), "wall-µs/update")
	b.ReportMetric(heap(), "MiB-heap")
}
