package coordination

import (
	"context"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/leases"
)

// What node, singleton and sharding need of leases is in package leases.
func init() {
	leases.Held.AcquireBlank = func(ctx context.Context, l any, b leases.Blank) (any, error) {
		g, err := l.(*Lease).acquire(ctx, core.Acquire{Wait: true,
			From: core.Blank{Version: leasestore.Version(b.Version), Token: Token(b.Token)}})
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	leases.Held.Yield = func(ctx context.Context, g any) (leases.Blank, error) {
		b, err := g.(*Grant).yield(ctx)
		return leases.Blank{Version: string(b.Version), Token: uint64(b.Token)}, err
	}
	leases.Held.Abandon = func(g any) { g.(*Grant).abandon(ErrClosed) }
	leases.Held.Previous = func(g any) uint64 { return uint64(g.(*Grant).previous) }
	leases.Held.Renewed = func(ctx context.Context, l any) error {
		_, err := l.(*Lease).renewed(ctx)
		return err
	}
	leases.Held.Observe = func(l any) func() { return l.(*Lease).observe() }
	leases.Held.Drain = func(s any) time.Duration { return s.(*Session).cfg.Drain }
	leases.Held.CheckName = checkName
	leases.Held.Broken = func(s any) error { return s.(*Session).broken() }
}
