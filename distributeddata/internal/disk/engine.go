package disk

import (
	"fmt"
	"runtime/debug"

	"github.com/concord-go/concord/distributeddata/store"
)

// Engine is a database in a directory that maps bytes to bytes. One goroutine writes; any may read.
// Panics and memory faults in calls of this interface are caught.
type Engine interface {
	// Room returns an error that wraps store.ErrFull if a commit of more bytes must not be started.
	Room(more int) error
	// Update runs f in a transaction and commits it with a sync, unless f fails. An error that
	// wraps store.ErrFull says that nothing was written and that the next Update may succeed.
	Update(f func(tx Tx) error) error
	// View returns a snapshot of the committed data.
	View() (Snapshot, error)
	Close() error
}

// Tx is a transaction.
type Tx interface {
	// Get returns nil if there is no such key. The result is valid until the next call.
	Get(key []byte) ([]byte, error)
	// Put retains both slices until the end of the transaction.
	Put(key, value []byte) error
	Delete(key []byte) error
}

// Snapshot is the data that was committed when it was created.
type Snapshot interface {
	// Get returns nil if there is no such key. The result is valid until Close.
	Get(key []byte) ([]byte, error)
	// Rows returns a cursor before the first key that begins with RowPrefix. At most one cursor may
	// be open.
	Rows() Cursor
	Close()
}

// Cursor iterates over the rows of a snapshot, until the cursor or the snapshot is closed.
type Cursor interface {
	// Next returns the next row in the order of keys, and io.EOF at the end. Any other error says
	// why the row with this key cannot be read or, without a key, why rows are missing here; Next
	// may be called again after it. The caller owns the slices.
	Next() (key, sealed []byte, err error)
	Close()
}

// Guarded runs f and converts a panic or an access to invalid memory into an error: databases run
// into these at damaged and missing parts of the files that they map.
func Guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the database panicked: %v", store.ErrCorrupt, p)
		}
	}()
	return f()
}
