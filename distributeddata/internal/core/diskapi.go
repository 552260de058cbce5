package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// DiskConfig configures a core whose rows are kept on a disk [R46]. All fields except Behind are
// required.
type DiskConfig struct {
	Owner string // its parts are separated by NUL; rows of another owner are rejected
	// Behind is the write-behind: a batch is written this long after its first change. With 0 it is
	// written at once, and outputs wait for it.
	Behind time.Duration
	Bytes  int           // bound on the estimated bytes gathered while a batch is being written
	Events int           // the same bound, in own updates and foreign messages
	Retry  time.Duration // after a full disk, the time until the next attempt

	batchRows int // set by tests, to less than what a store takes
}

// Inputs from the disk.
type (
	// Loaded hands over what the disk held at the start. Until it arrives, updates, reads, Drain
	// and Forget fail at once with ErrLoading, and messages are dropped. It arrives once per
	// process.
	Loaded struct{ Image *Image }
	// Committed is the outcome of a Commit, as the store returned it. The core ignores an outcome
	// that it does not wait for.
	Committed struct {
		Number uint64
		Err    error
	}
	// Flush completes, with a Done, when the disk has everything that this replica holds. If the
	// disk is full or has failed, it completes at once with Done.Store.
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
	// Commit requests that a batch be written, as a whole or not at all, and that the outcome be
	// returned as Committed. No other Commit is issued until then, except for the same one again
	// after Again or Resume. Batches must be written in the order of their effects; a batch issued
	// twice is written twice. Its context must not be cancelled while it is written.
	Commit struct {
		Number uint64
		Batch  *store.Batch
	}
	// DiskIs reports a new state of the disk. Every state other than DiskWorking should raise an
	// alarm.
	DiskIs struct{ DiskState }
	// Unrecovered names the keys of which the rows of a disk with a hole hold additions that no
	// member had when this replica was refilled. It should raise an alarm. The rows stay in the
	// store.
	Unrecovered struct{ Keys []string }
)

func (Commit) effect() {}
func (DiskIs) effect() {}

func (Unrecovered) effect() {}

// DiskPhase is the phase of a core's disk.
type DiskPhase uint8

// The phases.
const (
	NoDisk      DiskPhase = iota // there is no disk
	DiskLoading                  // Loaded has not arrived yet
	DiskWorking
	// A batch has been in flight for longer than Patience. It is treated as full until that batch
	// completes.
	DiskStalled
	// This replica counts in no quorum, and answers writes with the error, until there is room.
	DiskFull
	DiskFailed // the same, until the next start of the process
)

var diskPhases = [...]string{"none", "loading", "working", "stalled", "full", "failed"}

func (p DiskPhase) String() string { return diskPhases[p] }

// DiskState describes the disk of a replica.
type DiskState struct {
	Phase   DiskPhase
	Err     error  // of the commit that led to DiskFull or DiskFailed; ErrDiskSlow for DiskStalled
	Unsaved int    // estimated bytes of changes that are in no completed batch
	Batches uint64 // number written since the start
	// Refilling says that the disk had a hole. The readable rows are set aside until this replica
	// has been refilled and has compared them with what the other members have [R51].
	Refilling bool
	Holes     int // number of rows that could not be read at the start
}

// Errors of a disk. Match with errors.Is.
var (
	// ErrLoading: the rows have not been loaded yet. Nothing was done.
	ErrLoading = errors.New("core: the rows of the disk are being loaded")
	// ErrDiskBusy: too many changes wait for the disk. Nothing was done.
	ErrDiskBusy = errors.New("core: too many changes wait for the disk")
	// ErrDiskSlow: the disk did not complete the batch in time. Used in Done.Store.
	ErrDiskSlow = errors.New("core: the disk is slow: the batch is still being written")
	// ErrForeign: the rows belong to another owner. Returned by a Loader.
	ErrForeign = errors.New("the rows were written under another cluster, Name or Member")
	// ErrNewer: the rows have a format that this version does not know. Returned by a Loader.
	ErrNewer = errors.New("core: the rows have a newer format")
)
