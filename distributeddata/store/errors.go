package store

import (
	"errors"
)

// Errors of stores. Match with errors.Is.
var (
	// ErrInvalid: the batch is nil or exceeds a bound, and nothing of it was written; or the Config
	// or the directory of a store is not suitable, and nothing was changed.
	ErrInvalid = errors.New("store: invalid argument")
	// ErrClosed: the store is closed; nothing was written.
	ErrClosed = errors.New("store: closed")
	// ErrLocked: the directory is open in another store, in this process or another one. Returned
	// when a store is opened.
	ErrLocked = errors.New("store: locked by another opener")
	// ErrForeign: the directory holds data of another kind of store, of a later version, or of
	// something else. Returned when a store is opened; nothing was changed.
	ErrForeign = errors.New("store: belongs to another store")
	// ErrWrongKey: the directory is encrypted with another key, or it is not encrypted and a key
	// was given. Returned when a store is opened; nothing was changed.
	ErrWrongKey = errors.New("store: wrong key")
	// ErrCorrupt: the data on disk is not what was written. From Load it concerns one row. From
	// opening it concerns the whole directory, and nothing was changed on disk.
	ErrCorrupt = errors.New("store: corrupt")
	// ErrFull: the disk has too little space, and nothing was written. Later commits may succeed.
	ErrFull = errors.New("store: disk full")
	// ErrFailed: a write or sync has failed, and the content of the disk is unknown until the store
	// is reopened.
	ErrFailed = errors.New("store: failed")
)
