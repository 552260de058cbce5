package three

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Leases is the lease store of an example. It must keep session records, like memory, file, etcd
// and Kubernetes.
type Leases interface {
	coordination.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
}

// reach is one member's connection to a lease store.
type reach struct {
	Leases
	away atomic.Bool
}

// giver is a reach of a store whose server assigns tokens.
type giver struct {
	*reach
	leasestore.TokenGiver
}

var errAway = errors.New("the lease store does not answer")

// store returns the store for opening a session.
func (r *reach) store() coordination.Store {
	if g, ok := r.Leases.(leasestore.TokenGiver); ok {
		return giver{r, g}
	}
	return r
}

// Load implements coordination.Store.
func (r *reach) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if r.away.Load() {
		return leasestore.Record{}, "", errAway
	}
	return r.Leases.Load(ctx, name)
}

// Swap implements coordination.Store.
func (r *reach) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if r.away.Load() {
		return "", errAway
	}
	return r.Leases.Swap(ctx, name, old, next)
}

// Remove implements leasestore.Remover.
func (r *reach) Remove(ctx context.Context, name string, old leasestore.Version) error {
	if r.away.Load() {
		return errAway
	}
	return r.Leases.Remove(ctx, name, old)
}

// Watch implements leasestore.Watcher.
func (r *reach) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range r.Leases.Watch(ctx, name) {
			if r.away.Load() {
				yield(leasestore.Record{}, errAway)
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}
