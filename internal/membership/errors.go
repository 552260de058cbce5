package membership

import (
	"errors"
	"fmt"
)

// ErrStopped is returned by Ready when the service is stopped first.
var ErrStopped = errors.New("membership: service stopped")

// ErrRemoved is matched by every cause for which this life of the member has ended.
var ErrRemoved = errors.New("membership: member removed from its cluster")

// Causes; each also matches ErrRemoved. A new life of the same process, with a new member id, joins
// again.
var (
	// ErrDropped: the member's own provider does not list it any more.
	ErrDropped = fmt.Errorf("%w: its own provider dropped it", ErrRemoved)
	// ErrExpelled: most of the members that this one lists do not list it.
	ErrExpelled = fmt.Errorf("%w: most members that it lists do not list it", ErrRemoved)
	// ErrGaveWay: the cluster was split, and this member, with the permit of another fragment, ends
	// its life to join that one.
	ErrGaveWay = fmt.Errorf("%w: it gives way to another fragment of a split cluster", ErrRemoved)
)
