package storetest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sound is a disk without a bug.
func sound() (*testkit.Disk, Disk) {
	d := testkit.NewDisk(1)
	return d, Disk{
		Open: func() (store.Store, error) {
			s, err := d.Open("x")
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Crash:    d.Crash,
		FailSync: func() { d.Next(nil, testkit.DiskFaults{FailSync: true}) },
		Flip:     func(key string) { d.Flip("x", key) },
	}
}

func TestSuite_PassesOnASoundStore(t *testing.T) {
	Run(t, func(*testing.T) Disk {
		_, d := sound()
		return d
	})
}

// A disk without injected faults skips exactly the rules that need them.
func TestSuite_SkipsWhatCannotBeTold(t *testing.T) {
	_, d := sound()
	d.Crash, d.FailSync, d.Flip = nil, nil, nil
	var skipped []string
	for _, r := range rules() {
		if r.needs != nil && !r.needs(d) {
			skipped = append(skipped, r.name)
		}
	}
	want := []string{"S7_survives_crash", "S8_no_half_batch", "S16_failed_sync", "S17_changed_row"}
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
}

// bug is a store with a bug: methods that are not replaced work.
type bug struct {
	store.Store
	commit func(ctx context.Context, b *store.Batch) error
	load   func(ctx context.Context) iter.Seq2[store.Row, error]
	close  func() error
}

func (b *bug) Commit(ctx context.Context, batch *store.Batch) error {
	if b.commit != nil {
		return b.commit(ctx, batch)
	}
	return b.Store.Commit(ctx, batch)
}

func (b *bug) Load(ctx context.Context) iter.Seq2[store.Row, error] {
	if b.load != nil {
		return b.load(ctx)
	}
	return b.Store.Load(ctx)
}

func (b *bug) Close() error {
	if b.close != nil {
		return b.close()
	}
	return b.Store.Close()
}

// with makes every opened store a bug.
func with(plant func(d *testkit.Disk, b *bug)) func() Disk {
	return func() Disk {
		d, disk := sound()
		open := disk.Open
		disk.Open = func() (store.Store, error) {
			s, err := open()
			if err != nil {
				return nil, err
			}
			b := &bug{Store: s}
			plant(d, b)
			return b, nil
		}
		return disk
	}
}

// ops returns a batch of the operations.
func ops(steps []store.Op) *store.Batch {
	b := &store.Batch{}
	for _, o := range steps {
		if o.Delete {
			b.Delete(o.Key)
		} else {
			b.Put(o.Key, o.Value)
		}
	}
	return b
}

// planted lists bugs, and the rule that must detect each.
var planted = map[string]struct {
	disk func() Disk
	rule string
}{
	"yields in any order": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				var rows []store.Row
				for r, err := range b.Store.Load(ctx) {
					if err != nil {
						yield(r, err)
						return
					}
					rows = append(rows, r)
				}
				slices.Reverse(rows)
				for _, r := range rows {
					if !yield(r, nil) {
						return
					}
				}
			}
		}
	}), "S1"},
	"the first write of a batch wins": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			seen := map[string]bool{}
			return b.Store.Commit(ctx,
				ops(slices.DeleteFunc(slices.Collect(batch.Ops()), func(o store.Op) bool {
					was := seen[o.Key]
					seen[o.Key] = true
					return was
				})))
		}
	}), "S2"},
	"puts before deletes": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			steps := slices.Collect(batch.Ops())
			slices.SortStableFunc(steps, func(x, y store.Op) int {
				if x.Delete == y.Delete {
					return 0
				} else if y.Delete {
					return -1
				}
				return 1
			})
			return b.Store.Commit(ctx, ops(steps))
		}
	}), "S3"},
	"deletes leave an empty value": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			steps := slices.Collect(batch.Ops())
			for i := range steps {
				steps[i].Delete = false
			}
			return b.Store.Commit(ctx, ops(steps))
		}
	}), "S3"},
	"commits row by row": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			if err := batch.Validate(); err != nil {
				return err
			}
			for o := range batch.Ops() {
				if err := b.Store.Commit(ctx, ops([]store.Op{o})); err != nil {
					return err
				}
			}
			return nil
		}
	}), "S4"},
	"empty values are deletes": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			steps := slices.Collect(batch.Ops())
			for i := range steps {
				steps[i].Delete = steps[i].Delete || len(steps[i].Value) == 0
			}
			return b.Store.Commit(ctx, ops(steps))
		}
	}), "S5"},
	"keys end at a zero byte": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			steps := slices.Collect(batch.Ops())
			for i := range steps {
				if key, _, ok := strings.Cut(steps[i].Key, "\x00"); ok && key != "" {
					steps[i].Key = key
				}
			}
			return b.Store.Commit(ctx, ops(steps))
		}
	}), "S1"},
	"writes what fits of a batch that is too large": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			err := batch.Validate()
			if err != nil {
				_ = b.Store.Commit(ctx, ops(slices.Collect(batch.Ops())[:1]))
			}
			return errors.Join(err, b.Store.Commit(ctx, batch))
		}
	}), "S5"},
	"acknowledges before it writes": {lazy(1), "S7"},
	"writes the last batch never":   {lazy(0), "S6"},
	"writes half a batch first": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			steps := slices.Collect(batch.Ops())
			if len(steps) != 3 {
				return b.Store.Commit(ctx, batch)
			}
			return errors.Join(b.Store.Commit(ctx, ops(steps[:1])),
				b.Store.Commit(ctx, ops(steps[1:])))
		}
	}), "S8"},
	"a second close is an error": {with(func(_ *testkit.Disk, b *bug) {
		closed := false
		b.close = func() error {
			if closed {
				return store.ErrClosed
			}
			closed = true
			return b.Store.Close()
		}
	}), "S9"},
	"commits after close are silent": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			if err := b.Store.Commit(ctx, batch); !errors.Is(err, store.ErrClosed) {
				return err
			}
			return nil
		}
	}), "S10"},
	"loads after close are empty": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				for r, err := range b.Store.Load(ctx) {
					if errors.Is(err, store.ErrClosed) || !yield(r, err) {
						return
					}
				}
			}
		}
	}), "S10"},
	"drops what comes while it is busy": {with(func(_ *testkit.Disk, b *bug) {
		var busy sync.Mutex
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			for o := range batch.Ops() {
				if strings.HasPrefix(o.Key, "writer 07 2") { // as if it were
					return nil
				}
			}
			busy.Lock()
			defer busy.Unlock()
			return b.Store.Commit(ctx, batch)
		}
	}), "S11"},
	"does not look at the context": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(_ context.Context, batch *store.Batch) error {
			return b.Store.Commit(context.Background(), batch)
		}
	}), "S12"},
	"writes, then looks at the context": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			err := b.Store.Commit(context.Background(), batch)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}), "S12"},
	"yields the slices it was given": {with(func(_ *testkit.Disk, b *bug) {
		var given sync.Map
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			for o := range batch.Ops() {
				given.Store(o.Key, o.Value)
			}
			return b.Store.Commit(ctx, batch)
		}
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				for r, err := range b.Store.Load(ctx) {
					if v, ok := given.Load(r.Key); ok && err == nil {
						r.Value = v.([]byte)
					}
					if !yield(r, err) {
						return
					}
				}
			}
		}
	}), "S13"},
	"uses one buffer for all values": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				var buffer [32]byte
				for r, err := range b.Store.Load(ctx) {
					if len(r.Value) <= len(buffer) {
						r.Value = buffer[:copy(buffer[:], r.Value)]
					}
					if !yield(r, err) {
						return
					}
				}
			}
		}
	}), "S13"},
	"a second opener shares": {func() Disk {
		_, disk := sound()
		var open store.Store
		first := disk.Open
		disk.Open = func() (store.Store, error) {
			s, err := first()
			if errors.Is(err, store.ErrLocked) {
				return &bug{Store: open, close: func() error { return nil }}, nil
			}
			open = s
			return s, err
		}
		return disk
	}, "S14"},
	"does not unlock": {func() Disk {
		_, disk := sound()
		opened, first := 0, disk.Open
		disk.Open = func() (store.Store, error) {
			if opened++; opened > 1 {
				return nil, store.ErrLocked
			}
			return first()
		}
		return disk
	}, "S14"},
	"loads see later commits": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				for key, again := "", true; again; {
					again = false
					for r, err := range b.Store.Load(ctx) {
						if err == nil && r.Key <= key {
							continue
						}
						if !yield(r, err) {
							return
						}
						key, again = r.Key, err == nil
						break
					}
				}
			}
		}
	}), "S15"},
	"goes on after a failed sync": {with(func(_ *testkit.Disk, b *bug) {
		failed := false
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			err := b.Store.Commit(ctx, batch)
			if errors.Is(err, store.ErrFailed) {
				if failed {
					return nil
				}
				failed = true
			}
			return err
		}
	}), "S16"},
	"a failed sync is only logged": {with(func(_ *testkit.Disk, b *bug) {
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			if err := b.Store.Commit(ctx, batch); !errors.Is(err, store.ErrFailed) {
				return err
			}
			return nil
		}
	}), "S16"},
	"a changed row has an empty value": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				for r, err := range b.Store.Load(ctx) {
					if errors.Is(err, store.ErrCorrupt) {
						err = nil
					}
					if !yield(r, err) {
						return
					}
				}
			}
		}
	}), "S17"},
	"a changed row ends the load": {with(func(_ *testkit.Disk, b *bug) {
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			return func(yield func(store.Row, error) bool) {
				for r, err := range b.Store.Load(ctx) {
					if !yield(r, err) || err != nil {
						return
					}
				}
			}
		}
	}), "S17"},
}

// lazy acknowledges a batch when the next one arrives, or earlier. The first n calls of Close write
// the remaining batch.
func lazy(n int) func() Disk {
	return with(func(_ *testkit.Disk, b *bug) {
		var mu sync.Mutex
		var waiting *store.Batch
		flush := func() {
			if waiting != nil {
				_ = b.Store.Commit(context.Background(), waiting)
				waiting = nil
			}
		}
		b.commit = func(ctx context.Context, batch *store.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if err := errors.Join(b.Store.Commit(ctx, &store.Batch{}),
				batch.Validate()); err != nil {
				return err
			}
			flush()
			steps := slices.Collect(batch.Ops())
			for i := range steps {
				steps[i].Value = bytes.Clone(steps[i].Value)
			}
			waiting = ops(steps)
			return nil
		}
		b.load = func(ctx context.Context) iter.Seq2[store.Row, error] {
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				flush()
			}
			return b.Store.Load(ctx)
		}
		closes := 0
		b.close = func() error {
			mu.Lock()
			defer mu.Unlock()
			if closes++; closes <= n {
				flush()
			}
			return b.Store.Close()
		}
	})
}

func TestSuite_CatchesPlantedBugs(t *testing.T) {
	all := rules()
	for name, p := range planted {
		t.Run(name, func(t *testing.T) {
			r := all[slices.IndexFunc(all, func(r rule) bool {
				return strings.HasPrefix(r.name, p.rule+"_")
			})]
			var err error
			for range 50 { // two goroutines may need several attempts to collide
				if err = r.broken(p.disk()); err != nil {
					break
				}
			}
			switch {
			case err == nil:
				t.Errorf("%s does not see it", r.name)
			case !strings.HasPrefix(err.Error(), r.name+": "):
				t.Errorf("the failure does not name the rule: %v", err)
			}
			t.Log(err)
		})
	}
}
