package store

import (
	"errors"
	"fmt"
)

// Errors of stores. Match with errors.Is.
var (
	// ErrInvalid: the batch is beyond a bound, and nothing of it was written; or a store is opened with a Config or in a
	// directory that is not fit, and nothing was changed.
	ErrInvalid = errors.New("store: invalid batch")
	// ErrClosed: the store was closed before; nothing was written.
	ErrClosed = errors.New("store: closed")
	// ErrLocked: the place is open in another store, of this process or another one. Returned by what opens.
	ErrLocked = errors.New("store: locked by another opener")
	// ErrForeign: the place holds what another kind of store or a later version has written, or something else
	// altogether. Returned by what opens; nothing was changed.
	ErrForeign = errors.New("store: not of this store")
	// ErrWrongKey: the place is encrypted, and not with this key, or it is not encrypted and a key is given.
	// Returned by what opens; nothing was changed.
	ErrWrongKey = errors.New("store: wrong key")
	// ErrCorrupt: what is on disk is not what was written. In Load it is about one row; from what opens, it
	// is about the whole, and nothing was changed on disk.
	ErrCorrupt = errors.New("store: corrupt")
	// ErrFull: the disk has too little room, and nothing was written. Later commits may succeed.
	ErrFull = errors.New("store: disk full")
	// ErrFailed: a write or sync has failed, and what the disk holds is not known until it is opened again.
	ErrFailed = errors.New("store: failed")
)

// Corrupt returns the error of one row; an empty key stands for rows that are missing.
func Corrupt(key, why string) error {
	if key == "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, why)
	}
	return fmt.Errorf("%w: row %q: %s", ErrCorrupt, key, why)
}
