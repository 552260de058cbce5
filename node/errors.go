package node

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

var (
	// ErrInvalid is matched by every error of an invalid Config or RunConfig, by the errors of
	// Start and Shutdown about a missing or invalid argument, and by that of a second Start: a
	// cluster cannot be started twice, so create a new actor system.
	ErrInvalid = errors.New("node: invalid configuration")
	// ErrStart is matched when Proto.Actor could not start the member, since the port is in use or
	// the provider cannot be reached, when the context ended before the member was ready, or when
	// a component cannot get ready. The error says what the member was waiting for and which
	// members it saw. Shutdown must still be called.
	ErrStart = errors.New("node: member not started")
	// ErrStop is matched by the error of Run when the last incarnation did not stop in order, for
	// instance because a component exceeded its time. Leases that were not released expire by
	// themselves.
	ErrStop = errors.New("node: not stopped in order")
	// ErrSplit is returned by Run when the member was split off and OnSplit is Exit.
	ErrSplit = errors.New("node: split off from the cluster")
)

var (
	errStarted  = fmt.Errorf("%w: started before", ErrInvalid)
	errNotReady = fmt.Errorf("%w: not ready", ErrStart)
)

// ErrRemoved is matched by the causes for which an incarnation of a member ends without being
// stopped: see Removed, RemovalCause and Node.Context. Its text says whether the member's own
// provider no longer lists it, most members that it lists do not list it, or it has stepped down
// for another side of a split. The process can join again with another incarnation; Run does so.
var ErrRemoved = membership.ErrRemoved

// ErrRejoining is matched by the error of a call on a replicator, a singleton or a region whose
// context ended while the member, which was split off from its cluster, had not joined it again.
// The call had no effect, and the error wraps the cause of the context.
var ErrRejoining = lifecycle.ErrRejoining
