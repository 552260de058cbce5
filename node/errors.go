package node

import (
	"errors"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

var (
	// ErrInvalid is matched by every error of an invalid Config or RunConfig, and by the
	// errors of Start and Shutdown about a missing or invalid argument.
	ErrInvalid = errors.New("node: invalid configuration")
	// ErrStarted is returned by Start when the member was started before, successfully or not. A
	// cluster cannot be started twice: create a new actor system.
	ErrStarted = errors.New("node: started before")
	// ErrStart is matched when Proto.Actor could not start the member: the port is in use, or the
	// provider cannot be reached. Shutdown must still be called.
	ErrStart = errors.New("node: member not started")
	// ErrNotReady is matched when a member has started but the context ended before it was ready,
	// or a component cannot get ready. The error says what the member was waiting for and which
	// members it saw.
	ErrNotReady = errors.New("node: member not ready")
	// ErrStop is matched by the error of Run when the last life did not stop in order, for instance
	// because a component exceeded its time. Leases that were not released expire by themselves.
	ErrStop = errors.New("node: not stopped in order")
	// ErrSplit is returned by Run when the member was split off and OnSplit is Exit.
	ErrSplit = errors.New("node: split off from the cluster")
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
