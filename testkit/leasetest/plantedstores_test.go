package leasetest_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination"
)

// plantEqualVersions makes the version a hash of the record, like an ETag.
func plantEqualVersions(p *planted) {
	var mu sync.Mutex
	etag := func(r coordination.Record) coordination.Version { return coordination.Version(fmt.Sprint(r)) }
	p.load = func(ctx context.Context, name string) (coordination.Record, coordination.Version, error) {
		rec, ver, err := p.good.Load(ctx, name)
		if ver != "" {
			ver = etag(rec)
		}
		return rec, ver, err
	}
	p.swap = func(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
		mu.Lock()
		defer mu.Unlock()
		rec, ver, err := p.good.Load(ctx, name)
		if err != nil {
			return "", err
		}
		if ver != "" && etag(rec) != old || ver == "" && old != "" {
			return "", coordination.ErrConflict
		}
		_, err = p.good.Swap(ctx, name, ver, next)
		return etag(next), err
	}
}

// plantDeletion returns a blank record as a missing one.
func plantDeletion(p *planted) {
	p.load = func(ctx context.Context, name string) (coordination.Record, coordination.Version, error) {
		rec, ver, err := p.good.Load(ctx, name)
		if rec.Nonce == "" {
			return coordination.Record{}, "", err
		}
		return rec, ver, err
	}
	p.swap = func(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
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

func (r *renewable) Load(ctx context.Context, name string) (coordination.Record, coordination.Version, error) {
	return r.now().Load(ctx, name)
}

func (r *renewable) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
	return r.now().Swap(ctx, name, old, next)
}
