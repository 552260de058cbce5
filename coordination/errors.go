package coordination

import (
	"errors"
	"fmt"
)

// An attempt to acquire ends in one of three ways: nil, ErrHeld (certainly held by another
// session), or any other error (unknown: act as not holding, try again later). None is ever turned
// into another.
var (
	// ErrHeld is returned by Acquire and TryAcquire after a read that names another, living holder.
	// The error is a *HeldError.
	ErrHeld = errors.New("coordination: lease held by another owner")
	// ErrUnknown is returned when the store gave no conclusive answer. The session resolves a
	// pending write in the background: a claim that turns out to have succeeded is released.
	ErrUnknown = errors.New("coordination: outcome unknown")
	// ErrLost is the cause of a grant's context after a loss. The error is a *LostError.
	ErrLost = errors.New("coordination: lease lost")
	// ErrReleased is the cause of a grant's context after its Release.
	ErrReleased = errors.New("coordination: lease released")
	// ErrStillHeld is returned by Release when the store refused the write before the grant
	// expired. The record certainly still names this grant, although the grant is over. The session
	// repeats the write until the grant expires. If the grant had already expired, Release returns
	// ErrUnknown instead.
	ErrStillHeld = errors.New("coordination: lease still held")
	// ErrClosed is returned by every call that needs a session, after Close.
	ErrClosed = errors.New("coordination: session closed")
	// ErrInvalid is wrapped by errors about names, locations and configurations.
	ErrInvalid = errors.New("coordination: invalid argument")
)

// HeldError names the holder of the lease. It wraps ErrHeld.
type HeldError struct {
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: %s, token %d", ErrHeld, e.Holder.Owner, e.Holder.Token)
}

// Unwrap returns ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// LostError says why a tenure ended other than by Release. It wraps ErrLost, and Err if Err is not
// nil.
type LostError struct {
	Why Loss
	Err error // the last error of the store, or a *HeldError that names the new holder; may be nil
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v: %v", ErrLost, e.Why)
	}
	return fmt.Sprintf("%v: %v: %v", ErrLost, e.Why, e.Err)
}

// Unwrap returns ErrLost, and Err if it is not nil.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Err}
}

// Loss is the reason of a loss.
type Loss uint8

// Reasons of a loss.
const (
	Expired       Loss = iota // not renewed in time
	TakenOver                 // the record names another holder, or an operator has released it
	RecordDeleted             // the record is gone from the store
	Closed                    // the session was closed
)

func (l Loss) String() string {
	if int(l) >= len(lossNames) {
		return fmt.Sprintf("Loss(%d)", uint8(l))
	}
	return lossNames[l]
}

var lossNames = [...]string{"expired", "taken over", "record deleted", "session closed"}
