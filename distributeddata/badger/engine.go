package badger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
)

// engine implements disk.Engine with Badger.
type engine struct {
	db      *badger.DB
	reserve disk.Reserve
	least   int64 // Config.Reserve
	// Size of all tables when it was last measured, at least 1, and bytes committed since.
	measured, grown int64
	failing         atomic.Pointer[failedFlush] // the last one
	closing         atomic.Bool
}

// failedFlush is an attempt of Badger to write a table.
type failedFlush struct {
	at   time.Time
	says string
}

// flushFailed is called on the goroutine of Badger that writes tables. Badger repeats a failed
// attempt after a second, without end, and only logs it. The rows are safe in Badger's log. It
// returns whether this is the first of a series.
func (e *engine) flushFailed(says string) (first bool) {
	first = e.flushing() == nil
	e.failing.Store(&failedFlush{time.Now(), says})
	if e.closing.Load() {
		runtime.Goexit() // Close would never return
	}
	return first
}

// flushing returns an error that wraps store.ErrFull while Badger cannot write a table.
func (e *engine) flushing() error {
	f := e.failing.Load()
	if f == nil || time.Since(f.at) > 5*time.Second {
		return nil
	}
	return fmt.Errorf("directory %s: %w: no table can be written: %s", e.reserve.Dir, store.ErrFull,
		f.says)
}

// ours reports whether a file of this name may have been made by Badger.
func ours(name string) bool {
	return slices.Contains([]string{"MANIFEST", "MANIFEST-REWRITE", "KEYREGISTRY",
		"REWRITE-KEYREGISTRY", "DISCARD", "LOCK"}, name) ||
		strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".vlog") ||
		strings.HasSuffix(name, ".mem")
}

// tidy deletes empty logs. If a process is killed while Badger creates a log, before the log has
// its size, or while Badger deletes one, after truncating it, the log is left empty, and Badger
// rejects it. If damage has emptied a log, Load reports the missing end of the log as usual.
func tidy(dir string) error {
	for _, suffix := range []string{"*.mem", "*.vlog"} {
		logs, err := filepath.Glob(filepath.Join(dir, suffix))
		if err != nil {
			return err
		}
		for _, log := range logs {
			info, err := os.Stat(log)
			if err == nil && info.Size() == 0 {
				err = os.Remove(log)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Room rejects commits while the disk has too little space: Config.Reserve, plus the size of the
// tables, since compactions may rewrite all of them before they delete the old ones. It also
// rejects them while no table can be written, or Badger would block them.
func (e *engine) Room(more int) error {
	if err := e.reserve.Check(e.least + e.tables(more)); err != nil {
		return err
	}
	return e.flushing()
}

// tables returns the approximate size of all tables once more bytes have been committed.
func (e *engine) tables(more int) int64 {
	if e.grown += int64(more); e.grown > memTable || e.measured == 0 {
		e.measured, e.grown = 1, 0
		for _, t := range e.db.Tables() {
			e.measured += int64(t.OnDiskSize)
		}
	}
	return e.measured + e.grown
}

func (e *engine) Update(f func(tx disk.Tx) error) error {
	txn := e.db.NewTransaction(true)
	defer txn.Discard()
	if err := f(transaction{txn}); err != nil {
		return err
	}
	return txn.Commit()
}

func (e *engine) View() (disk.Snapshot, error) { return snapshot{e.db.NewTransaction(false)}, nil }

func (e *engine) Close() error {
	e.closing.Store(true)
	err := e.db.Close()
	return errors.Join(err, e.flushing())
}

type transaction struct{ txn *badger.Txn }

func (t transaction) Get(key []byte) ([]byte, error) {
	item, err := t.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

func (t transaction) Put(key, value []byte) error { return t.txn.Set(key, value) }

func (t transaction) Delete(key []byte) error { return t.txn.Delete(key) }

type snapshot struct{ txn *badger.Txn }

func (s snapshot) Get(key []byte) ([]byte, error) { return transaction(s).Get(key) }

func (s snapshot) Rows() disk.Cursor {
	return &cursor{rows: s.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{disk.RowPrefix}})}
}

func (s snapshot) Close() { s.txn.Discard() }

type cursor struct {
	rows  *badger.Iterator
	begun bool
}

func (c *cursor) Next() (key, sealed []byte, err error) {
	if c.begun {
		c.rows.Next()
	} else {
		c.rows.Rewind()
		c.begun = true
	}
	if !c.rows.Valid() {
		return nil, nil, io.EOF
	}
	item := c.rows.Item()
	sealed, err = item.ValueCopy(nil)
	return bytes.Clone(item.Key()), sealed, err
}

func (c *cursor) Close() { c.rows.Close() }
