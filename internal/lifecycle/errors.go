package lifecycle

import (
	"errors"
	"time"
)

// ErrStopping means that the member is leaving its cluster, or has left: nothing new is started.
var ErrStopping = errors.New("lifecycle: member is stopping")

// grace is how long a hook may take to return after its context has ended.
const grace = 100 * time.Millisecond
