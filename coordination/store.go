package coordination

import (
	"errors"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Store keeps the leases of sessions: the type that programs name when they open one. Its contract
// is that of leasestore.Store.
type Store = leasestore.Store

func recordOf(r core.Record) leasestore.Record {
	return leasestore.Record{Owner: r.Owner, Nonce: r.Nonce, Token: Token(r.Token),
		Attempt: r.Attempt, TTL: r.TTL,
		Session: Token(r.Session), Forever: r.Forever}
}

func coreRecord(r leasestore.Record) core.Record {
	return core.Record{Owner: r.Owner, Nonce: r.Nonce, Token: uint64(r.Token),
		Attempt: r.Attempt, TTL: r.TTL,
		Session: uint64(r.Session), Forever: r.Forever}
}

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
