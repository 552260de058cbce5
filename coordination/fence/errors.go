package fence

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/coordination"
)

var (
	// ErrStale is returned when a higher token has been seen. The effect was not made, and the
	// tenure of the token is certainly over. The error is a *StaleError.
	ErrStale = errors.New("fence: stale token")
	// ErrFull is returned by a Guard for an unknown resource when the number of resources has
	// reached Limit. The effect was not made.
	ErrFull = errors.New("fence: too many resources")
	// ErrContended is returned by Table.Admit when another transaction came between. Roll back and
	// try the whole transaction again.
	ErrContended = errors.New("fence: contended")
	// ErrInvalid is returned for a token that is missing, malformed, zero or above 2^63-1, for a
	// resource name longer than 255 bytes, by Transport when the context of the request has no
	// tenure, and by Envelope for a nil tenure. The effect was not made; nothing was sent.
	ErrInvalid = errors.New("fence: invalid")
)

// StaleError says which token was rejected. It wraps ErrStale.
type StaleError struct {
	Resource string             // "" in a Register, which does not know its key
	Token    coordination.Token // offered
	Highest  coordination.Token // seen before
}

func (e *StaleError) Error() string {
	if e.Resource == "" {
		return fmt.Sprintf("%v %d, %d has been seen", ErrStale, e.Token, e.Highest)
	}
	return fmt.Sprintf("%v %d for %q, %d has been seen", ErrStale, e.Token, e.Resource, e.Highest)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// maxToken is the largest token of a lease.
const maxToken coordination.Token = 1<<63 - 1

// maxResource is the maximum length of a resource name in bytes.
const maxResource = 255

func checkResource(name string) error {
	if len(name) > maxResource {
		return fmt.Errorf("%w: resource %.40q of %d bytes, at most %d", ErrInvalid, name, len(name),
			maxResource)
	}
	return nil
}

func checkToken(t coordination.Token) error {
	if t == 0 || t > maxToken {
		return fmt.Errorf("%w: token %d, must be from 1 to %d", ErrInvalid, t, maxToken)
	}
	return nil
}
