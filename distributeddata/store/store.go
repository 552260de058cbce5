package store

import (
	"context"
	"fmt"
	"iter"
)

// Bounds that every store enforces. A batch may hold all rows of one message between replicators.
const (
	MaxKey   = 1_024     // bytes of a key
	MaxValue = 1_000_000 // bytes of a value
	MaxBatch = 4_000_000 // bytes of the keys and values of a batch
	MaxRows  = 10_000    // puts and deletes of a batch
)

// Store keeps rows. Its methods are safe for concurrent use.
type Store interface {
	// Load yields all rows in ascending order of their keys, as they were at the first step;
	// commits may continue meanwhile. A corrupt row comes with its key and an error that wraps
	// ErrCorrupt, and Load continues. Such an error without a key says that unknown rows are
	// missing. Any other error ends the sequence. The caller owns the values.
	Load(ctx context.Context) iter.Seq2[Row, error]
	// Commit writes a batch, as a whole or not at all.
	//
	//   - nil: the batch is safely on disk.
	//   - ErrInvalid, ErrClosed, ErrFull: nothing was written. After ErrFull the store keeps
	//     working.
	//   - ErrFailed: the batch may or may not be present after reopening, and the store
	//     acknowledges nothing until it is reopened.
	//   - any other error, such as that of ctx: the batch may or may not be written, now or later.
	//
	// The store does not use the batch after Commit has returned, unless ctx is done: then it keeps
	// the batch.
	Commit(ctx context.Context, b *Batch) error
	// Close closes the store. It waits for pending commits, and for loads, which end at their next
	// row; so it must not be called in the loop of a Load. A nil result means that everything
	// committed is as safe as before. The directory can be reopened in either case.
	Close() error
}

// Row is a key and its value.
type Row struct {
	Key   string
	Value []byte
}

// Op is one operation of a batch.
type Op struct {
	Row
	Delete bool // Value is nil then
}

// Batch is a list of puts and deletes that are written together. The zero value is empty, and
// committing it is no error. A Batch is not safe for concurrent use.
type Batch struct {
	ops  []Op
	size int
}

// Put sets the value of a key. The batch takes ownership of value.
func (b *Batch) Put(key string, value []byte) { b.add(Op{Row: Row{key, value}}) }

// Delete removes a key.
func (b *Batch) Delete(key string) { b.add(Op{Row: Row{Key: key}, Delete: true}) }

func (b *Batch) add(o Op) {
	b.ops = append(b.ops, o)
	b.size += len(o.Key) + len(o.Value)
}

// Ops yields the operations in order.
func (b *Batch) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for _, o := range b.ops {
			if !yield(o) {
				return
			}
		}
	}
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Size returns the number of bytes of all keys and values.
func (b *Batch) Size() int { return b.size }

// Validate returns an error that wraps ErrInvalid if the batch is nil or exceeds a bound, which the
// error names. Stores call it in Commit.
func (b *Batch) Validate() error {
	if b == nil {
		return fmt.Errorf("%w: the batch is nil", ErrInvalid)
	}
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
			return fmt.Errorf("%w: row %d has a key of %d bytes, at most %d", ErrInvalid, i,
				len(o.Key), MaxKey)
		case len(o.Value) > MaxValue:
			return fmt.Errorf("%w: row %d has a value of %d bytes, at most %d", ErrInvalid, i,
				len(o.Value), MaxValue)
		}
	}
	return nil
}
