package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// batcher is a memory store that makes batches. While it is closed, swaps of leases wait; those of
// session records do not.
type batcher struct {
	memory.Store
	mu      sync.Mutex
	open    chan struct{}
	deaf    bool       // swaps that wait do not end with their context
	batches [][]string // names
	fault   func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped
}

func newBatcher() *batcher {
	b := &batcher{Store: memory.New(), open: make(chan struct{})}
	close(b.open)
	return b
}

// shut makes swaps wait until the returned function is called.
func (b *batcher) shut() (let func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := make(chan struct{})
	b.open = open
	return func() { close(open) }
}

func (b *batcher) pass(ctx context.Context) error {
	b.mu.Lock()
	open, deaf := b.open, b.deaf
	b.mu.Unlock()
	if deaf {
		<-open
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *batcher) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if !strings.HasPrefix(name, leasestore.SessionRecords) {
		if err := b.pass(ctx); err != nil {
			return "", err
		}
	}
	return b.Store.Swap(ctx, name, old, next)
}

func (b *batcher) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	var names []string
	for _, w := range swaps {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	b.mu.Lock()
	b.batches = append(b.batches, names)
	fault := b.fault
	b.mu.Unlock()
	if fault != nil {
		return fault(ctx, swaps)
	}
	out := make([]leasestore.Swapped, len(swaps))
	for i, w := range swaps {
		out[i].Version, out[i].Err = b.Swap(ctx, w.Name, w.Old, w.Next)
	}
	return out
}

// made returns the names of each batch since the last call.
func (b *batcher) made() (names [][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	names, b.batches = b.batches, nil
	return names
}

func (b *batcher) set(fault func(context.Context, []leasestore.Swap) []leasestore.Swapped) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// batching opens a session that has held a lease before, so that its record is written.
func batching(t *testing.T, store coordination.Store) *coordination.Session {
	s, err := coordination.Open(store, coordination.Config{})
	require.NoError(t, err)
	g, err := s.Lease("first").TryAcquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
	return s
}

// attempt is the outcome of an acquire.
type attempt struct {
	name  string
	grant *coordination.Grant
	err   error
}

// tryAll makes an attempt at each lease, all at once. They wait in the order of the names.
func tryAll(t *testing.T, s *coordination.Session, names ...string) (ended chan attempt) {
	ended = make(chan attempt, len(names))
	for _, name := range names {
		go func() {
			g, err := s.Lease(name).TryAcquire(t.Context())
			ended <- attempt{name, g, err}
		}()
		synctest.Wait()
	}
	return ended
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

// Two swaps are calls of their own. The others wait for the first of these to end, and share one
// call, of at most MaxBatch.
func TestBatch_SwapsThatWaitShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newBatcher()
		s := batching(t, store)
		let := store.shut()
		names := numbered("shard-", 10+leasestore.MaxBatch)
		ended := tryAll(t, s, names...)
		require.Empty(t, store.made())
		let()
		var grants []*coordination.Grant
		for range names {
			a := <-ended
			require.NoError(t, a.err, a.name)
			require.NoError(t, a.grant.Check())
			grants = append(grants, a.grant)
		}
		made := store.made()
		require.Len(t, made, 2, "batches, after two calls for one swap each")
		require.ElementsMatch(t, []int{leasestore.MaxBatch, 8}, []int{len(made[0]), len(made[1])})
		require.ElementsMatch(t, names[2:], slices.Concat(made...))
		require.EqualValues(t, len(names)+1, s.Status().Granted)

		let = store.shut()
		var wg sync.WaitGroup
		for _, g := range grants[:12] {
			wg.Go(func() { require.NoError(t, g.Release(t.Context())) })
		}
		synctest.Wait()
		let()
		wg.Wait()
		require.Len(t, slices.Concat(store.made()...), 10, "releases share calls too")
		for _, g := range grants[12:] {
			context.AfterFunc(g.Context(), func() { _ = g.Release(context.Background()) })
		}
		require.NoError(t, s.Close(t.Context()))
		for _, name := range names {
			rec, _, err := store.Load(t.Context(), name)
			require.NoError(t, err)
			require.Empty(t, rec.Nonce, "released")
		}
	})
}

// Each attempt gets the outcome of its own swap.
func TestBatch_AConflictIsOfItsOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newBatcher()
		s, other := batching(t, store), batching(t, store)
		let := store.shut()
		ended := tryAll(t, s, numbered("lease-", 10)...)
		for _, name := range []string{"lease-004", "lease-006"} { // after s has read them
			_, err := store.Store.Swap(t.Context(), name, "", leasestore.Record{Owner: "other",
				Nonce: other.ID(), Token: 1, TTL: time.Hour})
			require.NoError(t, err)
		}
		let()
		for range 10 {
			a := <-ended
			if a.name == "lease-004" || a.name == "lease-006" {
				require.ErrorIs(t, a.err, coordination.ErrHeld, a.name)
			} else {
				require.NoError(t, a.err, a.name)
			}
		}
		require.NotEmpty(t, store.made())
		_ = s.Close(t.Context())
		_ = other.Close(t.Context())
	})
}

// A store that hangs in the swaps of leases does not hold up the renewal of the session record.
func TestBatch_ARenewalWaitsForNoSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newBatcher()
		s := batching(t, store)
		g, err := s.Lease("held").TryAcquire(t.Context())
		require.NoError(t, err)
		store.deaf = true
		let := store.shut()
		ended := tryAll(t, s, numbered("lease-", 5)...)
		for range 5 {
			require.ErrorIs(t, (<-ended).err, coordination.ErrUnknown)
		}
		time.Sleep(time.Hour)
		require.NoError(t, g.Check())
		let()
		_ = s.Close(t.Context())
	})
}

// A swap that still waits when its time is up was certainly not made.
func TestBatch_ASwapThatWaitsTooLongIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newBatcher()
		store.deaf = true
		s := batching(t, store)
		let := store.shut()
		names := numbered("lease-", 6)
		for _, name := range names[:4] { // the last two are batches of one
			tryAll(t, s, name)
			time.Sleep(200 * time.Millisecond)
		}
		require.Len(t, store.made(), 2)
		ended := tryAll(t, s, names[4:]...)
		for range names[4:] {
			require.ErrorIs(t, (<-ended).err, coordination.ErrUnknown)
		}
		time.Sleep(s.TTL()) // the attempts go on for a while
		let()
		_ = s.Close(t.Context())
		made := slices.Concat(store.made()...)
		for _, name := range names[4:] {
			require.NotContains(t, made, name)
			_, ver, err := store.Load(t.Context(), name)
			require.NoError(t, err)
			require.Empty(t, ver, name)
		}
	})
}

// Whatever a store does with a batch, each attempt is answered, and later ones go on.
func TestBatch_AStoreThatBreaksItsContract(t *testing.T) {
	type swapAll func(context.Context, []leasestore.Swap) []leasestore.Swapped
	for name, fault := range map[string]swapAll{
		"panics": func(context.Context, []leasestore.Swap) []leasestore.Swapped { panic("bug") },
		"exits": func(context.Context, []leasestore.Swap) []leasestore.Swapped {
			runtime.Goexit()
			return nil
		},
		"returns nothing": func(context.Context, []leasestore.Swap) []leasestore.Swapped { return nil },
		"returns too many": func(_ context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
			return make([]leasestore.Swapped, len(swaps)+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newBatcher()
				s := batching(t, store)
				store.set(fault)
				let := store.shut()
				names := numbered("lease-", 6)
				ended := tryAll(t, s, names...)
				let()
				for range names { // a doubt may have been resolved by reading the record
					a := <-ended
					if a.err != nil {
						require.ErrorIs(t, a.err, coordination.ErrUnknown)
						continue
					}
					rec, _, err := store.Load(t.Context(), a.name)
					require.NoError(t, err)
					require.Equal(t, s.ID(), rec.Nonce, "granted, but not written: %s", a.name)
				}
				require.NotEmpty(t, store.made())
				store.set(nil)
				for _, name := range names {
					_, err := s.Lease(name).Acquire(t.Context())
					require.NoError(t, err)
				}
				_ = s.Close(t.Context())
			})
		})
	}
}

var errBroken = errors.New("connection broken")

// Batches that break off leave every outcome unknown, whether the swap was made or not. Sessions
// that compete for leases then still exclude each other.
func TestBatch_NeverTwoHolders(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			roll := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return dice.IntN(n)
			}
			store := newBatcher()
			broken := 0
			store.set(func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
				time.Sleep(time.Duration(roll(200)) * time.Millisecond)
				breaks := roll(3) == 0
				out := make([]leasestore.Swapped, len(swaps))
				for i, w := range swaps {
					if !breaks || roll(2) == 0 {
						out[i].Version, out[i].Err = store.Swap(ctx, w.Name, w.Old, w.Next)
					}
					if breaks {
						out[i] = leasestore.Swapped{Err: errBroken}
						mu.Lock()
						broken++
						mu.Unlock()
					}
				}
				return out
			})
			slow := slowSwaps{store, func() {
				time.Sleep(time.Duration(roll(100)) * time.Millisecond)
			}}
			holders := map[string]*coordination.Grant{}
			tokens := map[string]coordination.Token{}
			var wg sync.WaitGroup
			for range 3 {
				s := batching(t, slow)
				for _, name := range numbered("lease-", 8) {
					wg.Go(func() {
						for range 10 {
							g, err := s.Lease(name).Acquire(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							if h := holders[name]; h != nil && h.Check() == nil {
								t.Errorf("seed %d: two hold %s", seed, name)
							}
							if g.Token() <= tokens[name] {
								t.Errorf("seed %d: token %v of %s after %v", seed, g.Token(), name,
									tokens[name])
							}
							holders[name], tokens[name] = g, g.Token()
							mu.Unlock()
							time.Sleep(time.Duration(roll(300)) * time.Millisecond)
							mu.Lock()
							if holders[name] == g {
								holders[name] = nil
							}
							mu.Unlock()
							_ = g.Release(t.Context())
						}
					})
				}
				t.Cleanup(func() { _ = s.Close(context.Background()) })
			}
			wg.Wait()
			if len(store.made()) == 0 || broken == 0 {
				t.Errorf("seed %d: no batch was broken", seed)
			}
		})
	}
}

// slowSwaps delays swaps of one name.
type slowSwaps struct {
	*batcher
	delay func()
}

func (s slowSwaps) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	s.delay()
	return s.batcher.Swap(ctx, name, old, next)
}
