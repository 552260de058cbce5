package disk

import (
	"fmt"
	"runtime/debug"

	"github.com/concord-go/concord/distributeddata/store"
)

// Engine is a database that maps bytes to bytes in a directory. One goroutine writes, any may read.
// Its panics and faults in the calls of this interface are caught.
type Engine interface {
	// Room returns an error that wraps store.ErrFull if a commit of so many bytes is not to be begun.
	Room(more int) error
	// Update runs f in a transaction and commits it with a sync, unless f fails. An error that wraps store.ErrFull
	// says that nothing is written and that the next one may succeed.
	Update(f func(tx Tx) error) error
	// View returns what is committed.
	View() (Snapshot, error)
	Close() error
}

// Tx is a transaction.
type Tx interface {
	// Get returns nil if there is no such key. What it returns is valid until the next call.
	Get(key []byte) ([]byte, error)
	// Put keeps both slices until the end of the transaction.
	Put(key, value []byte) error
	Delete(key []byte) error
}

// Snapshot is what was committed when it was made.
type Snapshot interface {
	// Get returns nil if there is no such key. What it returns is valid until Close.
	Get(key []byte) ([]byte, error)
	// Rows returns a cursor before the first key that begins with RowPrefix. There is one at a time.
	Rows() Cursor
	Close()
}

// Cursor steps through the rows of a snapshot, until it is closed or the snapshot is.
type Cursor interface {
	// Next returns the next row by the order of keys, and io.EOF at the end. Any other error says why the row of
	// this key cannot be read or, without a key, why rows are missing here; Next may be called again after it.
	// The slices are the caller's.
	Next() (key, sealed []byte, err error)
	Close()
}

// Guarded runs f and makes an error of a panic, or of an access to memory that is not there: so databases meet damaged
// and missing parts of files that they map.
func Guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the database panics: %v", store.ErrCorrupt, p)
		}
	}()
	return f()
}
