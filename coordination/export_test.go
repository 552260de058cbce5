package coordination

import (
	"context"

	"github.com/concord-go/concord/coordination/internal/core"
)

// The tests of this package call what package leases has for other components.

type Blank = core.Blank

func (g *Grant) Yield(ctx context.Context) (Blank, error)    { return g.yield(ctx) }
func (l *Lease) Renewed(ctx context.Context) (Holder, error) { return l.renewed(ctx) }
func (l *Lease) Observe() (stop func())                      { return l.observe() }
func (s *Session) Broken() error                             { return s.broken() }
func (l *Lease) AcquireBlank(ctx context.Context, b Blank) (*Grant, error) {
	return l.acquire(ctx, core.Acquire{Wait: true, From: b})
}
