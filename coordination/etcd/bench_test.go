//go:build stores

package etcd_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/leavebench"
	"github.com/concord-go/concord/coordination/leasestore"
)

// BenchmarkAcquire compares an acquire with the plain conditional transaction that it needs at
// least, and with its individual requests, in turns. The figures are medians.
func BenchmarkAcquire(b *testing.B) {
	b.Run("members=1", func(b *testing.B) { benchAcquire(b, server(b)) })
	b.Run("members=3", func(b *testing.B) { benchAcquire(b, startCluster(b).endpoints()) })
}

func benchAcquire(b *testing.B, endpoints []string) {
	b.ReportAllocs()
	client := connect(b, endpoints)
	keys := prefix(b)
	store := open(b, client, keys)
	session, err := coordination.Open(store, coordination.Config{})
	must(b, err)
	b.Cleanup(func() { _ = session.Close(context.Background()) })
	var rev int64
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: 10 * time.Minute}
	var ver leasestore.Version
	parts := []struct {
		name string
		do   func() error
		took []time.Duration
	}{
		{name: "transaction", do: func() error {
			r, err := client.Txn(b.Context()).If(clientv3.Compare(clientv3.ModRevision(keys+"raw"),
				"=", rev)).Then(clientv3.OpPut(keys+"raw", "value")).Commit()
			if err == nil {
				rev = r.Header.Revision
			}
			return err
		}},
		{name: "acquire", do: func() error {
			_, err := session.Lease("bench").TryAcquire(b.Context())
			return err
		}},
		{name: "release", do: func() error {
			g, err := session.Lease("bench").TryAcquire(b.Context()) // already held: no request
			if err != nil {
				return err
			}
			return g.Release(b.Context())
		}},
		{name: "load", do: func() error {
			_, _, err := store.Load(b.Context(), "bench")
			return err
		}},
		{name: "swap", do: func() error { // between two holders
			rec.Token++
			var err error
			ver, err = store.Swap(b.Context(), "swap", ver, rec)
			return err
		}},
	}
	for b.Loop() {
		for i := range parts {
			begun := time.Now()
			if err := parts[i].do(); err != nil {
				b.Fatalf("%s: %v", parts[i].name, err)
			}
			parts[i].took = append(parts[i].took, time.Since(begun))
		}
	}
	medians := make([]time.Duration, len(parts))
	for i, p := range parts {
		slices.Sort(p.took)
		medians[i] = p.took[len(p.took)/2]
		b.ReportMetric(float64(medians[i].Microseconds()), p.name+"-µs")
	}
	b.ReportMetric(float64(medians[1])/float64(medians[0]), "acquire/transaction")
}

// single hides the ability to make batches.
type single struct {
	leasestore.Store
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.TokenGiver
}

// BenchmarkLeave measures a member that leaves, with and without batches in turn.
func BenchmarkLeave(b *testing.B) {
	client := connect(b, server(b))
	round := 0
	fresh := func() etcd.Store {
		round++
		return open(b, client, prefix(b)+fmt.Sprint(round, "/"))
	}
	leavebench.Run(b, func() coordination.Store { return fresh() }, func() coordination.Store {
		s := fresh()
		return single{s, s, s, s}
	})
}
