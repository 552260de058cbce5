package crdt

import (
	"errors"

	"github.com/concord-go/concord/internal/causal"
)

// Errors of this package. Test for them with errors.Is.
var (
	// ErrNoCodec is returned for an element of a type without a natural encoding. Give the value a
	// codec.
	ErrNoCodec = errors.New("crdt: element type needs a codec")
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
	// ErrForeign is returned for an update that replaced its value with one from elsewhere. Change
	// the value with its mutators.
	ErrForeign = errors.New("crdt: value replaced by one from elsewhere")
	// ErrCopy is returned for a change to a copy taken out of a map, since the change would be
	// lost. Change the value through the map's Update.
	ErrCopy = errors.New("crdt: change to a copy of a map's value; use Update")
	// ErrReplica is returned for a change to a value that has seen later changes of the same
	// replica: either the replica id was used before, or an older writer or copy was used.
	ErrReplica = errors.New("crdt: value has seen later changes of this replica")
	// ErrGap is returned for a delta that builds on changes the receiver has not seen. Apply the
	// missing deltas first, or merge a whole state. Nothing was changed.
	ErrGap = errors.New("crdt: delta applied before the deltas it builds on")
	// ErrField is returned for a [Record] of a struct with a field that is unexported or is not a
	// value of this package.
	ErrField = errors.New("crdt: invalid field of a record")
	// ErrNoDelta is returned for user-defined types, which have no deltas and are merged whole.
	ErrNoDelta = errors.New("crdt: type has no deltas")
)
