package distributeddata

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/lifecycle"
)

// The same errors come out of direct calls and of the Result of responses. Test with errors.Is.
var (
	// ErrNotFound: no value is there, as far as the consulted replicas know. The value returned with it
	// is the key's empty one.
	ErrNotFound = errors.New("distributeddata: key not found")
	// ErrDeleted: the entry was deleted with Permanently, and cannot be used again.
	ErrDeleted = errors.New("distributeddata: key deleted for good")
	// ErrQuorum: the level was not reached in time; see QuorumError. A write is not undone: it is
	// applied here, goes on spreading and may be everywhere already.
	ErrQuorum = errors.New("distributeddata: consistency level not reached")
	// ErrModify: the modify function refused or panicked, or a mutator failed; it wraps the reason.
	// Nothing has changed.
	ErrModify = errors.New("distributeddata: update refused")
	// ErrType: the key holds a value of another type, or of two. Nothing has changed.
	ErrType = crdt.ErrType
	// ErrUnknown: the context ended before the replicator answered; it wraps the cause. What was asked
	// for may have happened, may still happen, or may not. Of a write it also says that the life of the member
	// ended before the level was reached: the write is kept, and goes on spreading in the next life.
	ErrUnknown = errors.New("distributeddata: outcome unknown")
	// ErrBetweenLives: the context ended while the member was between two lives, see Replicator. Nothing was
	// done: the operation may be tried again.
	ErrBetweenLives = lifecycle.ErrBetweenLives
	// ErrClosed: the replicator has not been started yet, or has been closed. An operation that was
	// under way may have happened.
	ErrClosed = errors.New("distributeddata: replicator not running")
	// ErrInvalid: a key, a level or a configuration that cannot be used; the text says why. Nothing has
	// changed.
	ErrInvalid = errors.New("distributeddata: invalid argument")
)

// QuorumError says how far an operation came that did not reach its level. It is ErrQuorum, and
// context.DeadlineExceeded.
type QuorumError struct {
	Key              string
	Needed, Answered int      // replicas, this one included
	Missing          []string // addresses of the members that did not take part
}

func (e *QuorumError) Error() string {
	return fmt.Sprintf("%v: key %q: %d of %d replicas, none of %v", ErrQuorum, e.Key, e.Answered, e.Needed, e.Missing)
}

// Unwrap makes the error match ErrQuorum and context.DeadlineExceeded.
func (e *QuorumError) Unwrap() []error { return []error{ErrQuorum, context.DeadlineExceeded} }

// outcome turns the end of a core's operation into an error.
func outcome(key string, d core.Done, address func(member string) string) error {
	switch {
	case d.Err != nil:
		return d.Err
	case d.Short != nil:
		q := &QuorumError{Key: key, Needed: d.Short.Needed, Answered: d.Short.Answered}
		for _, m := range d.Short.Missing {
			q.Missing = append(q.Missing, address(m))
		}
		return q
	}
	return nil
}
