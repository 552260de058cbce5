package leasestore

import (
	"context"
	"time"
)

// Queuer keeps a queue of waiters for each lease; coordination.Config.Fair requires one. The queue
// only decides which waiter tries first, so it need not be as durable as records: a queue may be
// lost, or restarted empty if it cannot be read.
//
// Sessions themselves pass over dead waiters, which they recognize by a Beat that does not grow. A
// store whose server detects dead clients may remove their waiters sooner.
type Queuer interface {
	// Enqueue writes a waiter into the queue of a name: at the end, or at its present position if
	// the nonce is already queued. A Beat smaller than the stored one changes nothing. Enqueue
	// returns the waiters ahead of w, in order of arrival. The queue may be bounded, at 256 waiters
	// or more; at the bound the waiter that was written least recently is removed. After any error
	// w may or may not have been written.
	Enqueue(ctx context.Context, name string, w Waiter) (ahead []Waiter, err error)
	// Leave removes waiters, except those that have been written again with a larger Beat. A waiter
	// that is not in the queue is not an error. After any error each may or may not have been
	// removed.
	Leave(ctx context.Context, name string, gone []Waiter) error
}

// Waiter is one session in the queue of a lease.
type Waiter struct {
	Nonce string        `json:"nonce"` // of the session
	Beat  uint64        `json:"beat"`  // grows with each write of the waiter
	TTL   time.Duration `json:"ttl"`   // it expires if unchanged for longer; in nanoseconds
}
