package leasetest_test

import (
	"context"
	"fmt"
	"sync"

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
