package leasestore

import (
	"context"
	"time"
)

// Queuer keeps a queue of waiters for each lease; Config.Fair requires one. The queue only decides
// which waiter tries first, so it need not be as durable as records: a queue may be lost, or
// restarted empty if it cannot be read.
//
// Sessions themselves pass over the places of dead sessions, which they recognize by a Beat that
// does not grow. A store whose server detects dead clients may remove such places sooner.
type Queuer interface {
	// Enqueue writes a place into the queue of a name: at the end, or at its present position if
	// the nonce is already queued. A Beat smaller than the stored one changes nothing. Enqueue
	// returns the places ahead of the written one, in order of arrival. The queue may be bounded,
	// at 256 places or more; at the bound the place that was written least recently is removed.
	// After any error the place may or may not have been written.
	Enqueue(ctx context.Context, name string, p Place) (ahead []Place, err error)
	// Leave removes places, except those that have been written again with a larger Beat. A place
	// that is not in the queue is not an error.
	Leave(ctx context.Context, name string, gone []Place) error
}

// Place is one session in the queue of a lease.
type Place struct {
	Nonce string        `json:"nonce"` // of the session
	Beat  uint64        `json:"beat"`  // grows with each write of the place
	TTL   time.Duration `json:"ttl"`   // the place expires if unchanged for longer; in nanoseconds
}
