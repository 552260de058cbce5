package coordination_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

var errAway = errors.New("store away")

// flaky is a memory store that can be unavailable, or refuse to write.
type flaky struct {
	memory.Store
	away, refuses atomic.Bool
	delay         atomic.Int64 // of each answer, in nanoseconds
}

func (f *flaky) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	time.Sleep(time.Duration(f.delay.Load()))
	if f.away.Load() {
		return leasestore.Record{}, "", errAway
	}
	return f.Store.Load(ctx, name)
}

func (f *flaky) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	time.Sleep(time.Duration(f.delay.Load()))
	if f.away.Load() {
		return "", errAway
	}
	if f.refuses.Load() {
		return "", leasestore.ErrRefused
	}
	return f.Store.Swap(ctx, name, old, next)
}
