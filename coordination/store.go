package coordination

import (
	"errors"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Store keeps the leases of sessions: the type that programs name when they open one. Its contract
// is that of leasestore.Store.
type Store = leasestore.Store

// statusOf returns the status for an error of Swap.
func statusOf(err error) core.Status {
	switch {
	case err == nil:
		return core.Written
	case errors.Is(err, leasestore.ErrConflict):
		return core.Conflicted
	case errors.Is(err, leasestore.ErrRefused):
		return core.Refused
	}
	return core.Unknown
}
