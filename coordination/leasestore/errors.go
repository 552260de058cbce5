package leasestore

import "errors"

// The errors of stores wrap these.
var (
	// ErrConflict is returned by Swap if the version was not the expected one. Nothing was
	// written.
	ErrConflict = errors.New("leasestore: record changed")
	// ErrRefused is returned by Swap when certainly nothing was written, for a reason
	// other than a conflict: no permission, a read-only disk, a name the store cannot keep.
	ErrRefused = errors.New("leasestore: nothing was written")
	// ErrDamaged is wrapped by the errors of all stores about a record or a document that
	// the store did not write: damaged, of another name, or of a later format. A caller can
	// conclude nothing about the holder, so an acquisition returns ErrUnknown, which wraps it too.
	// No store overwrites damaged records and documents: repair or delete them by hand.
	ErrDamaged = errors.New("leasestore: damaged content")
)
