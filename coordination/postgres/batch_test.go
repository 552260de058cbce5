//go:build stores

package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/leavebench"
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

// BenchmarkLeave measures a member that leaves, with and without batches in turn.
func BenchmarkLeave(b *testing.B) {
	db := connect(b)
	fresh := func() postgres.Store { return open(b, db, table()) }
	leavebench.Run(b, func() coordination.Store { return fresh() }, func() coordination.Store {
		s := fresh()
		return single{s, s, s}
	})
}
