// Package leavebench measures a member that leaves, on the lease stores that can make batches.
package leavebench

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Run acquires and releases 1,000 leases, 64 at a time, as a region of package sharding does. It
// does so in turn with stores from batches and from single, which is to hide the ability to make
// batches, and reports the median times.
func Run(b *testing.B, batches, single func() coordination.Store) {
	took := map[string][]time.Duration{}
	for b.Loop() {
		round(b, single(), "single-", took)
		round(b, batches(), "batches-", took)
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Milliseconds()), name+"-ms")
	}
}

func round(b *testing.B, store coordination.Store, kind string, took map[string][]time.Duration) {
	b.Helper()
	s, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		b.Fatal(err)
	}
	grants := make([]*coordination.Grant, 1000)
	took[kind+"acquire"] = append(took[kind+"acquire"], each(b, len(grants), func(i int) (err error) {
		grants[i], err = s.Lease(fmt.Sprint("shard-", i)).Acquire(b.Context())
		return err
	}))
	took[kind+"release"] = append(took[kind+"release"], each(b, len(grants), func(i int) error {
		return grants[i].Release(b.Context())
	}))
	if err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// each calls do for each number below n, 64 at a time, and returns how long that took.
func each(b *testing.B, n int, do func(i int) error) time.Duration {
	b.Helper()
	begun := time.Now()
	var wg sync.WaitGroup
	turns := make(chan struct{}, 64)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := do(i); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return time.Since(begun)
}
