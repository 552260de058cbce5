package leasestore

import "context"

// Batcher is an optional ability of a Store: it swaps the records of several names in one call. A
// session that makes many swaps at the same time, as when a member with a thousand shards leaves,
// then needs few calls of the database. The stores of packages etcd and postgres implement it.
type Batcher interface {
	// SwapAll makes up to MaxBatch swaps of different names, and returns the outcome of each, in
	// the same order. The swaps do not depend on each other, and they need not be atomic: each
	// outcome has the meaning that it has after Swap, whatever the others are. In particular, if
	// the call breaks off, the outcome of every swap that may have been made is an error other than
	// ErrConflict and ErrRefused.
	SwapAll(ctx context.Context, swaps []Swap) []Swapped
}

// MaxBatch is the maximum number of swaps in one call of SwapAll.
const MaxBatch = 64

// Swap is one swap of a batch: the arguments of Store.Swap.
type Swap struct {
	Name string
	Old  Version
	Next Record
}

// Swapped is the outcome of one swap of a batch: the results of Store.Swap.
type Swapped struct {
	Version Version
	Err     error
}
