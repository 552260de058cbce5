package store

import (
	"context"
	"fmt"
	"iter"
)

// Bounds that every store keeps. A batch may hold all rows of one message between replicators.
const (
	MaxKey   = 1_024     // bytes of a key
	MaxValue = 1_000_000 // bytes of a value
	MaxBatch = 4_000_000 // bytes of the keys and values of a batch
	MaxRows  = 10_000    // puts and deletes of a batch
)

// Store keeps rows. Its methods may be called by many goroutines.
type Store interface {
	// Load yields all rows in ascending order of their keys, as they were at the first step, and commits go
	// on meanwhile. A row that cannot be trusted comes with its key and an error that wraps ErrCorrupt, and
	// the stream goes on; without a key it says that rows are missing, and does not know which. Any other
	// error is the last. Values are the caller's.
	Load(ctx context.Context) iter.Seq2[Row, error]
	// Commit writes a batch, whole or not at all.
	//
	//   - nil: it is safe on disk.
	//   - ErrInvalid, ErrClosed, ErrFull: nothing was written; after ErrFull the store goes on.
	//   - ErrFailed: it may or may not be there after the next opening, and nothing is acknowledged any
	//     more. The store stays so until it is opened again.
	//   - anything else, as when ctx ends while it waits: it may or may not be there, or come to be.
	//
	// The batch is not used after Commit has returned, unless ctx has ended: then it is the store's.
	Commit(ctx context.Context, b *Batch) error
	// Close ends the store: it waits for commits under way, and for loads, which end at their next row. So it
	// must not be called in the loop of one. What it returns is nil when
	// everything committed is safe, as it was before; the place can be opened again in either case.
	Close() error
}

// Row is a key and its value.
type Row struct {
	Key   string
	Value []byte
}

// Op is one step of a batch.
type Op struct {
	Row
	Delete bool // and Value is nil
}

// Batch is puts and deletes that are written together. The zero value is empty, and committing that is no
// error. It is not for use by several goroutines.
type Batch struct {
	ops  []Op
	size int
}

// Put sets the value of a key. The value is the batch's from now on.
func (b *Batch) Put(key string, value []byte) { b.add(Op{Row: Row{key, value}}) }

// Delete removes a key.
func (b *Batch) Delete(key string) { b.add(Op{Row: Row{Key: key}, Delete: true}) }

func (b *Batch) add(o Op) {
	b.ops = append(b.ops, o)
	b.size += len(o.Key) + len(o.Value)
}

// Ops yields the steps in order.
func (b *Batch) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for _, o := range b.ops {
			if !yield(o) {
				return
			}
		}
	}
}

// Len is the number of steps.
func (b *Batch) Len() int { return len(b.ops) }

// Size is the number of bytes of all keys and values.
func (b *Batch) Size() int { return b.size }

// Validate returns an error that wraps ErrInvalid, with the bound, if the batch is beyond one. Stores call it
// in Commit.
func (b *Batch) Validate() error {
	if len(b.ops) > MaxRows {
		return fmt.Errorf("%w: %d rows, at most %d", ErrInvalid, len(b.ops), MaxRows)
	}
	if b.size > MaxBatch {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, b.size, MaxBatch)
	}
	for i, o := range b.ops {
		switch {
		case o.Key == "":
			return fmt.Errorf("%w: row %d has no key", ErrInvalid, i)
		case len(o.Key) > MaxKey:
			return fmt.Errorf("%w: row %d has a key of %d bytes, at most %d", ErrInvalid, i, len(o.Key), MaxKey)
		case len(o.Value) > MaxValue:
			return fmt.Errorf("%w: row %d has a value of %d bytes, at most %d", ErrInvalid, i, len(o.Value), MaxValue)
		}
	}
	return nil
}
