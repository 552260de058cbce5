package crdt

import (
	"errors"

	"github.com/concord-go/concord/internal/causal"
)

// Errors of this package. Test for them with errors.Is.
var (
	// ErrNoCodec refuses an element of a type that has no natural encoding; give the value a codec.
	ErrNoCodec = errors.New("crdt: element type needs a codec")
	// ErrElement refuses an element that its codec cannot encode canonically, such as a NaN.
	ErrElement = errors.New("crdt: element has no canonical encoding")
	// ErrMalformed is returned by every Decode for bytes that no value encodes to. The receiver is
	// unchanged.
	ErrMalformed = causal.ErrMalformed
	// ErrVersion says that the bytes are of a later version of this package. Nothing was decoded.
	ErrVersion = causal.ErrVersion
	// ErrType says that the state holds a value of another type than the one asked for, or of two
	// types, created concurrently under one name. Nothing was changed.
	ErrType = errors.New("crdt: state holds another type")
	// ErrTooLarge refuses an element, a key or a value over the limit.
	ErrTooLarge = causal.ErrTooLarge
	// ErrOverflow refuses an addition that would take a counter out of its range.
	ErrOverflow = errors.New("crdt: counter out of range")
	// ErrBounds refuses to take more from a [BoundedCounter] than the replica holds. Others may hold the
	// rest: ask them for a transfer.
	ErrBounds = errors.New("crdt: replica does not hold enough")
	// ErrForeign refuses an update that put a value from elsewhere in the place of the one it was
	// given: change it with its mutators.
	ErrForeign = errors.New("crdt: value replaced by one from elsewhere")
	// ErrCopy refuses to change a copy that was taken out of a map, since the change would be lost:
	// change the value through the map's Update.
	ErrCopy = errors.New("crdt: change to a copy of a map's value; use Update")
	// ErrReplica refuses a change to a value that has seen later changes of the same replica: the id
	// was used before, or an older writer or copy was used.
	ErrReplica = errors.New("crdt: value has seen later changes of this replica")
	// ErrGap says that a delta cannot be applied yet, since the receiver has not seen all that its
	// origin had seen. Apply the missing deltas first, or merge a whole state. Nothing was changed.
	ErrGap = errors.New("crdt: delta applied before what it builds on")
	// ErrField refuses a [Record] of a struct with fields that are not exported or no values of this
	// package.
	ErrField = errors.New("crdt: field of a record is no value")
	// ErrNoDelta refuses deltas for own types, which are merged whole.
	ErrNoDelta = errors.New("crdt: type has no deltas")
)
