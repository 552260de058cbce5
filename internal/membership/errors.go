package membership

import "errors"

// ErrStopped is returned by Ready when the service is stopped first.
var ErrStopped = errors.New("membership: service stopped")

// ErrRemoved is returned by Ready when the member is expelled first.
var ErrRemoved = errors.New("membership: member removed from its cluster")
