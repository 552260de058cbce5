package crdt

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/internal/causal"
)

// Errors of this package. Test for them with errors.Is.
var (
	// ErrInvalid is returned for a mistake of the program, which the error names: an element type
	// that needs a codec, a [Record] of other fields than values of this package, a delta of a
	// user-defined type, a value replaced by one from elsewhere, a change to a copy of a map's
	// value, which would be lost, or a change to a value that has seen later changes of the same
	// replica, since its id or an older writer or copy was used again. Nothing was changed.
	ErrInvalid = errors.New("crdt: invalid use")
	// ErrElement is returned for an element that its codec cannot encode canonically, such as a
	// NaN.
	ErrElement = errors.New("crdt: element has no canonical encoding")
	// ErrMalformed is returned by every Decode for bytes that are not the encoding of a value. The
	// receiver is unchanged.
	ErrMalformed = causal.ErrMalformed
	// ErrVersion is returned for bytes written by a later version of this package. Nothing was
	// decoded.
	ErrVersion = causal.ErrVersion
	// ErrType is returned if the state holds a value of another type than the requested one, or
	// values of two types that were created concurrently under one name. Nothing was changed.
	ErrType = errors.New("crdt: state holds another type")
	// ErrTooLarge is returned for an element, a key or a value over the size limit.
	ErrTooLarge = causal.ErrTooLarge
	// ErrOverflow is returned for an addition that would take a counter out of its range.
	ErrOverflow = errors.New("crdt: counter out of range")
	// ErrBounds is returned for a subtraction or transfer from a [BoundedCounter] of more than the
	// replica holds. Other replicas may hold the rest: ask them for a transfer.
	ErrBounds = errors.New("crdt: replica holds too few rights")
	// ErrGap is returned for a delta that builds on changes the receiver has not seen. Apply the
	// missing deltas first, or merge a whole state. Nothing was changed.
	ErrGap = errors.New("crdt: delta applied before the deltas it builds on")
)

var (
	errNoCodec = fmt.Errorf("%w: element type needs a codec", ErrInvalid)
	errForeign = fmt.Errorf("%w: value replaced by one from elsewhere; use its mutators", ErrInvalid)
	errCopy    = fmt.Errorf("%w: change to a copy of a map's value; use Update", ErrInvalid)
	errReplica = fmt.Errorf("%w: value has seen later changes of this replica", ErrInvalid)
	errField   = fmt.Errorf("%w: field of a record", ErrInvalid)
	errNoDelta = fmt.Errorf("%w: type has no deltas", ErrInvalid)
)
