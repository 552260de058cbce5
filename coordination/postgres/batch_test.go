//go:build stores

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
)

// TestSwapAll_OneRefusedSwap: a swap that PostgreSQL refuses fails the statement of its batch. The
// others are made all the same.
func TestSwapAll_OneRefusedSwap(t *testing.T) {
	s := open(t, connect(t), table())
	held := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	negative := held
	negative.TTL = -1 // violates a constraint
	for _, bad := range []leasestore.Swap{
		{Name: "bad", Next: negative},
		{Name: strings.Repeat("\\", 600), Next: held}, // too long when escaped
	} {
		ver, err := s.Swap(t.Context(), "present", "", held)
		must(t, err)
		got := s.SwapAll(t.Context(), []leasestore.Swap{{Name: "a", Next: held}, bad,
			{Name: "present", Old: ver, Next: leasestore.Record{Token: 1}},
			{Name: "present too", Old: "1.1", Next: held}})
		if !errors.Is(got[1].Err, leasestore.ErrRefused) ||
			!errors.Is(got[3].Err, leasestore.ErrConflict) {
			t.Fatalf("%v, %v", got[1].Err, got[3].Err)
		}
		for i, name := range map[int]string{0: "a", 2: "present"} {
			must(t, got[i].Err)
			_, ver, err := s.Load(t.Context(), name)
			must(t, err)
			if ver != got[i].Version {
				t.Errorf("%s has version %q, not %q", name, ver, got[i].Version)
			}
			must(t, s.Remove(t.Context(), name, ver))
		}
	}
}

// TestSwapAll_TellsWatchers: changes of tenure in a batch are reported to watchers, as single ones
// are.
func TestSwapAll_TellsWatchers(t *testing.T) {
	s := open(t, connect(t), table())
	held := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	seen := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	for _, name := range []string{"a", "b"} {
		watches.Go(func() {
			for rec, err := range s.Watch(ctx, name) {
				if err != nil {
					return // the end of ctx; otherwise the test waits in vain
				}
				seen <- name + " " + rec.Nonce
			}
		})
	}
	wait := func(want ...string) {
		for slices.Sort(want); len(want) > 0; {
			got := <-seen
			if i, ok := slices.BinarySearch(want, got); ok {
				want = slices.Delete(want, i, i+1)
			}
		}
	}
	wait("a ", "b ")
	got := s.SwapAll(t.Context(), []leasestore.Swap{{Name: "b", Next: held},
		{Name: "a", Next: held}})
	wait("a n", "b n")
	blank := leasestore.Record{Token: 1}
	got = s.SwapAll(t.Context(), []leasestore.Swap{{Name: "a", Old: got[1].Version, Next: blank},
		{Name: "b", Old: got[0].Version, Next: blank}})
	must(t, errors.Join(got[0].Err, got[1].Err))
	wait("a ", "b ")
}

// single hides the ability to make batches.
type single struct {
	leasestore.Store
	leasestore.SessionKeeper
	leasestore.Remover
}

// BenchmarkLeave acquires and releases 1,000 leases, 64 at a time, as a region of package sharding
// does, with and without batches in turn.
func BenchmarkLeave(b *testing.B) {
	db := connect(b)
	stores := map[string]func(*postgres.Store) coordination.Store{
		"batches": func(s *postgres.Store) coordination.Store { return s },
		"single":  func(s *postgres.Store) coordination.Store { return single{s, s, s} },
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, kind := range []string{"single", "batches"} {
			s := session(b, stores[kind](open(b, db, table())), coordination.Config{})
			grants := make([]*coordination.Grant, 1000)
			for _, phase := range []struct {
				name string
				do   func(i int) error
			}{
				{"acquire", func(i int) (err error) {
					grants[i], err = s.Lease(fmt.Sprint("shard-", i)).Acquire(b.Context())
					return err
				}},
				{"release", func(i int) error { return grants[i].Release(b.Context()) }},
			} {
				begun := time.Now()
				var wg sync.WaitGroup
				turns := make(chan struct{}, 64)
				for i := range grants {
					turns <- struct{}{}
					wg.Go(func() {
						defer func() { <-turns }()
						if err := phase.do(i); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				name := kind + "-" + phase.name
				took[name] = append(took[name], time.Since(begun))
			}
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Milliseconds()), name+"-ms")
	}
}
