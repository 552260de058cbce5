package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

var batchChecks = []check{
	{"S17_SwapsOfABatchAreIndependent", checkBatch},
	{"S18_ConcurrentBatchesHaveOneWinnerForEachName", checkBatchRace},
	{"S19_ABatchThatIsCutHasAnOutcomeForEachSwap", checkBatchCut},
}

// batcher skips the claim if the store is no Batcher.
func (e *env) batcher() leasestore.Batcher {
	b, ok := e.store.(leasestore.Batcher)
	e.needsAbility(ok, "Batcher")
	return b
}

// found is what Load returns.
type found struct {
	record  leasestore.Record
	version leasestore.Version
}

func (e *env) find(name string) found {
	e.Helper()
	rec, ver, err := e.store.Load(e.Context(), name)
	e.must(err)
	return found{rec, ver}
}

// checkBatch makes batches in which some swaps conflict, and compares every record with the outcome
// of its swap.
func checkBatch(e *env) {
	b := e.batcher()
	written := func(name string, times int) (now, before leasestore.Version) {
		for i := range times {
			next, err := e.store.Swap(e.Context(), name, now, sample(i+1))
			e.must(err)
			now, before = next, now
		}
		return now, before
	}
	held, _ := written("held", 1)
	_, outdated := written("outdated", 2)
	written("present", 1)
	long, _ := written("longer ü/\x00\"", 3)
	swaps := []leasestore.Swap{
		{Name: "outdated", Old: outdated, Next: sample(7)},
		{Name: "absent", Next: sample(7)},
		{Name: "present", Next: sample(7)},
		{Name: "held", Old: held, Next: leasestore.Record{Token: 1}},
		{Name: "nonsense", Old: "nonsense", Next: sample(7)},
		{Name: "longer ü/\x00\"", Old: long, Next: sample(7)},
	}
	conflicts := []bool{true, false, true, false, true, false}
	e.batch(e.Context(), b, swaps, func(i int, got leasestore.Swapped) {
		e.that(conflicts[i] == errors.Is(got.Err, leasestore.ErrConflict), "%q: %v", swaps[i].Name,
			got.Err)
		e.that(conflicts[i] || got.Err == nil, "%q: %v", swaps[i].Name, got.Err)
	})

	var full, blank []leasestore.Swap
	for i := range leasestore.MaxBatch {
		full = append(full, leasestore.Swap{Name: fmt.Sprint("full-", i), Next: sample(i + 1)})
	}
	all := func(int, leasestore.Swapped) {}
	for i, got := range e.batch(e.Context(), b, full, all) {
		e.must(got.Err)
		blank = append(blank, leasestore.Swap{Name: full[i].Name, Old: got.Version,
			Next: leasestore.Record{Token: full[i].Next.Token}})
	}
	for _, got := range e.batch(e.Context(), b, blank, all) {
		e.must(got.Err)
	}

	const bad = "a\xffb" // like Swap, SwapAll may reject a name that the store cannot read back
	mixed := []leasestore.Swap{{Name: bad, Next: sample(1)}, {Name: "beside", Next: sample(1)}}
	got := b.SwapAll(e.Context(), mixed)
	e.that(len(got) == 2, "%d outcomes of 2", len(got))
	e.that(got[0].Err == nil || errors.Is(got[0].Err, leasestore.ErrRefused), "%q: %v", bad,
		got[0].Err)
	e.that(got[1].Err == nil && e.find("beside").version == got[1].Version, "beside %q: %v", bad,
		got[1].Err)

	ended, cancel := context.WithCancel(e.Context())
	cancel()
	e.batch(ended, b, []leasestore.Swap{{Name: "late", Next: sample(1)},
		{Name: "later", Next: sample(1)}}, func(_ int, got leasestore.Swapped) {
		e.that(got.Err != nil && !errors.Is(got.Err, leasestore.ErrConflict),
			"with an ended context: %v", got.Err)
	})
}

// batch makes swaps in one call, and passes each outcome to check. A record must have changed
// exactly if its outcome says so.
func (e *env) batch(ctx context.Context, b leasestore.Batcher, swaps []leasestore.Swap,
	check func(i int, got leasestore.Swapped)) []leasestore.Swapped {
	e.Helper()
	before := make([]found, len(swaps))
	for i, w := range swaps {
		before[i] = e.find(w.Name)
	}
	got := b.SwapAll(ctx, slices.Clone(swaps))
	if len(got) != len(swaps) {
		e.Fatalf("%d outcomes of %d swaps", len(got), len(swaps))
	}
	for i, w := range swaps {
		check(i, got[i])
		now := e.find(w.Name)
		if got[i].Err == nil {
			e.that(e.kept(now.record, w.Next) && now.version == got[i].Version &&
				now.version != before[i].version, "%q: made, but found as %v, %v before", w.Name,
				now, before[i])
		} else {
			e.that(now.version == before[i].version, "%q: %v, but found as %v, %v before", w.Name,
				got[i].Err, now, before[i])
		}
	}
	return got
}

// checkBatchRace makes batches of the same names at the same time, in different orders. Some names
// have a record.
func checkBatchRace(e *env) {
	b := e.batcher()
	const names = 16
	var swaps []leasestore.Swap
	for i := range names {
		w := leasestore.Swap{Name: fmt.Sprint("r-", i)}
		if i%2 == 0 {
			var err error
			w.Old, err = e.store.Swap(e.Context(), w.Name, "", sample(1))
			e.must(err)
		}
		swaps = append(swaps, w)
	}
	const batches = 8
	var wg sync.WaitGroup
	start := make(chan struct{})
	var got [batches][]leasestore.Swapped
	order := func(n, i int) int { return (i*(2*n+1) + n) % names } // odd factors have no common one
	for n := range batches {
		wg.Go(func() {
			mine := make([]leasestore.Swap, names)
			for i := range mine {
				mine[i] = swaps[order(n, i)]
				mine[i].Next = sample(n + 2)
			}
			<-start
			got[n] = b.SwapAll(e.Context(), mine)
		})
	}
	close(start)
	wg.Wait()
	won := map[string]int{}
	for n := range batches {
		if len(got[n]) != names {
			e.Fatalf("%d outcomes of %d swaps", len(got[n]), names)
		}
		for i, got := range got[n] {
			name := swaps[order(n, i)].Name
			switch {
			case got.Err == nil:
				won[name]++
				now := e.find(name)
				e.that(now.version == got.Version && now.record.Attempt == uint64(n+2),
					"%q: found as %v after batch %d had written it", name, now, n)
			case !errors.Is(got.Err, leasestore.ErrConflict):
				e.Errorf("%q: %v", name, got.Err)
			}
		}
	}
	for _, w := range swaps {
		e.that(won[w.Name] == 1, "%q: %d batches have written it", w.Name, won[w.Name])
	}
}

// checkBatchCut ends the context of a batch in the middle, each time a little later, until a batch
// is complete. A swap that was made must not be reported as certainly not made, and vice versa.
func checkBatchCut(e *env) {
	b := e.batcher()
	batches := 0
	cut := func(ctx context.Context) (complete bool) {
		batches++
		swaps := make([]leasestore.Swap, leasestore.MaxBatch)
		for i := range swaps {
			swaps[i] = leasestore.Swap{Name: fmt.Sprint("cut-", batches, "-", i),
				Next: sample(i + 1)}
		}
		complete = true
		for i, got := range b.SwapAll(ctx, slices.Clone(swaps)) {
			now := e.find(swaps[i].Name)
			switch {
			case got.Err == nil:
				e.that(now.version == got.Version, "%q: made as %q, found as %v", swaps[i].Name,
					got.Version, now)
				continue
			case errors.Is(got.Err, leasestore.ErrConflict), errors.Is(got.Err,
				leasestore.ErrRefused):
				e.that(now.version == "", "%q: %v, but found as %v", swaps[i].Name, got.Err, now)
			}
			complete = false
		}
		return complete
	}
	for uses := int64(0); uses < 100_000; uses += uses/2 + 1 {
		ctx, cancel := context.WithCancel(e.Context())
		f := &fuse{Context: ctx, burn: cancel}
		f.left.Store(uses)
		complete := cut(f)
		cancel()
		if complete {
			break
		}
	}
	if !e.options.Outside {
		return // virtual time does not pass during a call
	}
	begun := time.Now()
	e.that(cut(e.Context()), "a batch that is not cut is not made")
	took := time.Since(begun)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(e.Context(), took*time.Duration(i+1)/20)
		cut(ctx)
		cancel()
	}
}

// fuse is a context that ends when it has been used a number of times.
type fuse struct {
	context.Context
	left atomic.Int64
	burn context.CancelFunc
}

func (f *fuse) use() {
	if f.left.Add(-1) < 0 {
		f.burn()
	}
}

func (f *fuse) Done() <-chan struct{} {
	f.use()
	return f.Context.Done()
}

func (f *fuse) Err() error {
	f.use()
	return f.Context.Err()
}
