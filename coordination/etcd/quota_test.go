//go:build stores

package etcd_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// TestQuota_RefusedMeansNotWritten: near its quota, etcd executes transactions and answers them
// with ResourceExhausted all the same.
func TestQuota_RefusedMeansNotWritten(t *testing.T) {
	c := startMembers(t, 1, "--quota-backend-bytes", fmt.Sprint(4<<20))
	s := open(t, connect(t, c.endpoints()), prefix(t))
	held := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	document := func(name string) []leasestore.Swapped {
		v, err := s.SwapDocument(t.Context(), name, "", make([]byte, leasestore.MaxDocument))
		return []leasestore.Swapped{{Version: v, Err: err}}
	}
	batch := func(name string) []leasestore.Swapped {
		var swaps []leasestore.Swap
		for i := range leasestore.MaxBatch {
			swaps = append(swaps, leasestore.Swap{Name: fmt.Sprint(name, "-", i), Next: held})
		}
		return s.SwapAll(t.Context(), swaps)
	}
	var failed, executed atomic.Int64
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := 0; i < 200 && failed.Load() < 300; i++ {
				name := fmt.Sprint("w", w, "-", i)
				got := document(name)
				_, v, err := s.LoadDocument(t.Context(), name)
				check(t, got[0], v, err, &failed, &executed)
				if w%4 != 0 {
					continue
				}
				for j, got := range batch(name) {
					_, v, err := s.Load(t.Context(), fmt.Sprint(name, "-", j))
					check(t, got, v, err, &failed, &executed)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d writes failed, %d of them had been executed", failed.Load(), executed.Load())
	if failed.Load() == 0 {
		t.Error("the quota was not reached")
	}
}

// check compares the outcome of a write to a new name with what is found there.
func check(t *testing.T, got leasestore.Swapped, found leasestore.Version, err error,
	failed, executed *atomic.Int64) {
	if err != nil {
		t.Errorf("load: %v", err)
		return
	}
	if got.Err == nil {
		return
	}
	failed.Add(1)
	if found == "" {
		return
	}
	executed.Add(1)
	if errors.Is(got.Err, leasestore.ErrRefused) || errors.Is(got.Err, leasestore.ErrConflict) {
		t.Errorf("found under version %q, but the outcome is: %v", found, got.Err)
	}
}
