package leasetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/concord-go/concord/coordination/leasestore"
)

// plantEqualVersions makes the version a hash of the record, like an ETag.
func plantEqualVersions(p *planted) {
	var mu sync.Mutex
	etag := func(r leasestore.Record) leasestore.Version {
		return leasestore.Version(fmt.Sprint(r))
	}
	p.load = func(ctx context.Context, name string) (leasestore.Record, leasestore.Version, error) {
		rec, ver, err := p.good.Load(ctx, name)
		if ver != "" {
			ver = etag(rec)
		}
		return rec, ver, err
	}
	p.swap = func(ctx context.Context, name string, old leasestore.Version,
		next leasestore.Record) (leasestore.Version, error) {
		mu.Lock()
		defer mu.Unlock()
		rec, ver, err := p.good.Load(ctx, name)
		if err != nil {
			return "", err
		}
		if ver != "" && etag(rec) != old || ver == "" && old != "" {
			return "", leasestore.ErrConflict
		}
		_, err = p.good.Swap(ctx, name, ver, next)
		return etag(next), err
	}
}

// plantDeletion returns a blank record as a missing one.
func plantDeletion(p *planted) {
	p.load = func(ctx context.Context, name string) (leasestore.Record, leasestore.Version, error) {
		rec, ver, err := p.good.Load(ctx, name)
		if rec.Nonce == "" {
			return leasestore.Record{}, "", err
		}
		return rec, ver, err
	}
	p.swap = func(ctx context.Context, name string, old leasestore.Version,
		next leasestore.Record) (leasestore.Version, error) {
		if rec, ver, err := p.good.Load(ctx, name); err == nil && rec.Nonce == "" && old == "" {
			old = ver
		}
		return p.good.Swap(ctx, name, old, next)
	}
}

// renewable is a store whose records can be lost; it then starts over, including its versions.
type renewable struct {
	mu sync.Mutex
	*planted
}

func (r *renewable) forget() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planted = correct()
	return nil
}

func (r *renewable) now() *planted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.planted
}

func (r *renewable) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	return r.now().Load(ctx, name)
}

func (r *renewable) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	return r.now().Swap(ctx, name, old, next)
}

// plantBatchThatEnds makes no swap of a batch after a conflict.
func plantBatchThatEnds(p *planted) {
	p.batch = func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
		out := make([]leasestore.Swapped, len(swaps))
		for i, w := range swaps {
			if i > 0 && out[i-1].Err != nil {
				out[i].Err = out[i-1].Err
				continue
			}
			out[i].Version, out[i].Err = p.good.Swap(ctx, w.Name, w.Old, w.Next)
		}
		return out
	}
}

// plantBatchInOrder returns the outcomes in the order of the names.
func plantBatchInOrder(p *planted) {
	p.batch = func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
		slices.SortFunc(swaps, func(a, b leasestore.Swap) int {
			return strings.Compare(a.Name, b.Name)
		})
		return each(p.good.Swap)(ctx, swaps)
	}
}

// plantBatchInSteps compares the versions of a batch before it writes the records.
func plantBatchInSteps(p *planted) {
	var compared sync.WaitGroup // the first two batches
	compared.Add(2)
	var batches atomic.Int64
	p.batch = func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
		out := make([]leasestore.Swapped, len(swaps))
		for i, w := range swaps {
			if _, ver, _ := p.good.Load(ctx, w.Name); ver != w.Old {
				out[i].Err = leasestore.ErrConflict
			}
		}
		if batches.Add(1) <= 2 {
			compared.Done()
		}
		compared.Wait()
		for i, w := range swaps {
			for out[i].Err == nil && out[i].Version == "" {
				_, ver, _ := p.good.Load(ctx, w.Name)
				out[i].Version, _ = p.good.Swap(ctx, w.Name, ver, w.Next)
			}
		}
		return out
	}
}

// plantBatchCut reports a batch that was cut in the middle as refused as a whole.
func plantBatchCut(p *planted) {
	p.batch = func(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
		out := each(p.good.Swap)(ctx, swaps)
		if ctx.Err() == nil {
			return out
		}
		for i := range out {
			out[i] = leasestore.Swapped{Err: leasestore.ErrRefused}
		}
		return out
	}
}
