package membership

import (
	"errors"
	"fmt"
)

// ErrStopped is returned by Ready when the service is stopped first.
var ErrStopped = errors.New("membership: service stopped")

// ErrRemoved is wrapped by all causes for which this incarnation of the member has ended.
var ErrRemoved = errors.New("membership: member removed from its cluster")

// The causes. Each wraps ErrRemoved. A new incarnation of the same process, with a new member id,
// rejoins the cluster.
var (
	// ErrDropped means that the member's own provider no longer lists it.
	ErrDropped = fmt.Errorf("%w: its own provider dropped it", ErrRemoved)
	// ErrExpelled means that most of the members listed by this one do not list it.
	ErrExpelled = fmt.Errorf("%w: most members that it lists do not list it", ErrRemoved)
	// ErrSteppedDown means that the cluster was split, and that this member, with a permit of
	// another fragment, ends its incarnation to join that fragment.
	ErrSteppedDown = fmt.Errorf("%w: it steps down for another side of a split cluster", ErrRemoved)
)
