package coordination

import (
	"errors"
	"fmt"
)

// An attempt to acquire ends in one of three ways: nil, ErrHeld (certainly another holder), anything
// else (unknown: act as not holding, try again later). None is ever turned into another.
var (
	// ErrHeld is returned by Acquire and TryAcquire after a read that names another, living holder.
	// It comes as a *HeldError.
	ErrHeld = errors.New("coordination: lease held by another owner")
	// ErrUnknown is returned when the store gave no answer that decides. What was begun is resolved
	// in the background: a write that turns out to have succeeded is taken back.
	ErrUnknown = errors.New("coordination: outcome unknown")
	// ErrLost is the cause of a grant's context after a loss. It comes as a *LostError.
	ErrLost = errors.New("coordination: lease lost")
	// ErrReleased is the cause of a grant's context after its Release.
	ErrReleased = errors.New("coordination: lease released")
	// ErrStillHeld is returned by Release when the store has refused before the grant expired: the lease is
	// certainly still held by this grant's record, although the grant is over. It is tried again until it
	// expires. Of a grant that has expired already Release returns ErrUnknown then.
	ErrStillHeld = errors.New("coordination: lease still held")
	// ErrConflict is returned by Store.Swap: the version was another, nothing was written.
	ErrConflict = errors.New("coordination: record changed")
	// ErrRefused is returned by Store.Swap when nothing was written for certain, and for another
	// reason than a conflict: no permission, a read-only disk, a name the store cannot keep.
	ErrRefused = errors.New("coordination: store refused")
	// ErrDamagedDocument is returned by Document.Load for content that Document.Swap has not written. Swap does not
	// overwrite it: repair or delete it by hand.
	ErrDamagedDocument = errors.New("coordination: damaged document")
	// ErrClosed is returned by everything that needs a session after its Close.
	ErrClosed = errors.New("coordination: session closed")
	// ErrInvalid is wrapped by mistakes in names, locations and configurations.
	ErrInvalid = errors.New("coordination: invalid argument")
)

// HeldError says who holds the lease. It is ErrHeld.
type HeldError struct {
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: %s, token %d", ErrHeld, e.Holder.Owner, e.Holder.Token)
}

// Unwrap makes it ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// LostError says why a tenure ended otherwise than by Release. It is ErrLost, and Err if there is one.
type LostError struct {
	Why Loss
	Err error // the last error of the store, or a *HeldError naming who took over; may be nil
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v: %v", ErrLost, e.Why)
	}
	return fmt.Sprintf("%v: %v: %v", ErrLost, e.Why, e.Err)
}

// Unwrap makes it ErrLost and its own cause.
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
