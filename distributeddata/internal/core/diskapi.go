package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// DiskConfig is of a core whose rows are kept on a disk [R60]. All fields but Behind are required.
type DiskConfig struct {
	Owner  string        // whose rows these are, as cluster and member; rows of another owner are refused
	Behind time.Duration // write-behind: batches are written so long after the first change; 0: at once, and outputs wait
	Bytes  int           // bound on what gathers while a batch is being written, in estimated bytes
	Events int           // and in own updates and foreign messages
	Retry  time.Duration // after a full disk, until the next attempt

	batchRows int // of a test: less than a store takes
}

// Inputs from the disk.
type (
	// Loaded brings what the disk held at the start. Until then updates, reads, Drain and Forget end at once with
	// ErrLoading, and messages are dropped. It comes once in the life of a process.
	Loaded struct{ Image *Image }
	// Committed is the outcome of a Commit, as the store returned it. One that is not awaited is passed over.
	Committed struct {
		Number uint64
		Err    error
	}
	// Flush ends, with a Done, when the disk has all that this replica holds. A disk that is full, or has
	// failed, ends it at once with Done.Store.
	Flush struct {
		ID       uint64
		Deadline time.Time
	}
)

func (Loaded) event()    {}
func (Committed) event() {}
func (Flush) event()     {}

// Outputs for the disk.
type (
	// Commit asks for a batch to be written, whole or not at all, and for its outcome as Committed. No other is asked
	// for until then, but for the same once more after Again or Resume: batches are to be written in the order of
	// their effects, and one that is there twice is written twice. Its context must not end while it is written.
	Commit struct {
		Number uint64
		Batch  *store.Batch
	}
	// DiskIs says that the disk is in another state now. But for DiskWorking it should raise an alarm.
	DiskIs struct{ DiskState }
)

func (Commit) effect() {}
func (DiskIs) effect() {}

// DiskPhase is what a core knows of its disk.
type DiskPhase uint8

// The phases.
const (
	NoDisk      DiskPhase = iota // nothing is kept
	DiskLoading                  // Loaded has not come yet
	DiskWorking
	DiskStalled // a batch has been under way for longer than Patience: as full, until it ends
	DiskFull    // this replica counts in no quorum, and answers writes with the error, until there is room
	DiskFailed  // the same, until the next start of the process
)

var diskPhases = [...]string{"none", "loading", "working", "stalled", "full", "failed"}

func (p DiskPhase) String() string { return diskPhases[p] }

// DiskState is how the disk of a replica stands.
type DiskState struct {
	Phase   DiskPhase
	Err     error  // of the commit that led to DiskFull or DiskFailed; ErrDiskSlow for DiskStalled
	Unsaved int    // estimated bytes of changes that no finished batch holds
	Batches uint64 // written since the start
	// Refilling says that the disk had a hole: what could be read of it is set aside until this replica has been
	// refilled, and what nobody else has seen is then done again [R22a].
	Refilling bool
	Holes     int // rows that could not be read at the start
}

// Errors of a disk. Match with errors.Is.
var (
	// ErrLoading: the rows have not been loaded yet. Nothing was done.
	ErrLoading = errors.New("core: the rows of the disk are being loaded")
	// ErrDiskBusy: too much waits for the disk. Nothing was done.
	ErrDiskBusy = errors.New("core: too many changes wait for the disk")
	// ErrDiskSlow: the disk did not have it in time. In Done.Store.
	ErrDiskSlow = errors.New("core: the disk is slow: the batch is still being written")
	// ErrForeign: the rows are of another owner. Of a Loader.
	ErrForeign = errors.New("core: the rows are of another owner")
	// ErrNewer: the rows have a format that this version does not know. Of a Loader.
	ErrNewer = errors.New("core: the rows have a newer format")
)
