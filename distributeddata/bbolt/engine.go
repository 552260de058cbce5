package bbolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
)

const (
	fileName = "rows.db"
	newName  = "rows.db.new" // a file that is being created
)

var bucketName = []byte("rows")

// ours reports whether a file of this name may have been made by this store.
func ours(name string) bool { return name == fileName || name == newName }

// engine implements disk.Engine with bbolt.
type engine struct {
	db      *bbolt.DB
	file    *os.File // of db
	reserve disk.Reserve
	cfg     Config
	stuck   bool // a transaction has not ended, and bbolt would wait for it forever
}

// openEngine opens the file, and creates it if it does not exist. An existing file is read
// completely before bbolt may touch it.
func openEngine(dir string, cfg Config) (e *engine, newestDamaged bool, err error) {
	e = &engine{cfg: cfg, reserve: disk.Reserve{Dir: dir, Free: disk.FreeSpace}}
	path := filepath.Join(dir, fileName)
	if newestDamaged, err = verify(path); errors.Is(err, fs.ErrNotExist) {
		err = e.create(dir)
	}
	if err != nil {
		return nil, false, err
	}
	return e, newestDamaged, e.open(path)
}

// verify reads the whole tree of a file.
func verify(path string) (otherDamaged bool, err error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	m, otherDamaged, err := readMeta(f)
	if err != nil {
		return false, fmt.Errorf("%w: %s: %w", store.ErrCorrupt, fileName, err)
	}
	if pages := info.Size() / pageSize; m.high > uint64(pages) {
		return false, fmt.Errorf("%w: %s has %d pages, and should have %d", store.ErrCorrupt,
			fileName, pages, m.high)
	}
	for w := newWalk(f, m.root, m.high); ; {
		switch _, _, err := w.next(); {
		case errors.Is(err, io.EOF):
			return otherDamaged, nil
		case err != nil:
			return false, fmt.Errorf("%w: %s: %w", store.ErrCorrupt, fileName, err)
		}
	}
}

// create creates a file under a temporary name first, so that an existing file is always complete.
func (e *engine) create(dir string) error {
	path := filepath.Join(dir, newName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := e.open(path); err != nil {
		return err
	}
	err := e.db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err = errors.Join(err, e.db.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(dir, fileName)); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}

// open opens a file. If bbolt fails or panics, it closes the file, which bbolt would keep locked.
func (e *engine) open(path string) error {
	err := disk.Guarded(func() (err error) {
		e.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: time.Nanosecond, // 0 means forever
			// Rebuilt from the tree: less to write, nothing to damage.
			NoFreelistSync:  true,
			FreelistType:    bbolt.FreelistMapType,
			PageSize:        pageSize,
			InitialMmapSize: int(e.cfg.MaxSize), // remapping would wait for all loads
			MaxSize:         int(e.cfg.MaxSize),
			NoStatistics:    true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				e.file = f
				return f, err
			},
		})
		return err
	})
	if err == nil {
		e.db.AllocSize = 1 << 20
		return nil
	}
	if e.file != nil {
		_ = e.file.Close()
	}
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("%w: %w", store.ErrLocked, err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("%w: no address space for MaxSize (%d): lower it, or raise the limit of this process: %w", store.ErrInvalid, e.cfg.MaxSize, err)
	}
	return err
}

// Room implements disk.Engine. The space for a commit depends on the pages it touches, not on its
// size. If the reserve is not enough, the disk reports that before anything counts.
func (e *engine) Room(int) error { return e.reserve.Check(e.cfg.Reserve) }

// Update implements disk.Engine.
func (e *engine) Update(f func(tx disk.Tx) error) error {
	tx, err := e.db.Begin(true)
	if err != nil {
		return err
	}
	before := tx.ID()
	e.stuck = true // until the transaction has ended
	if err := f(transaction{tx.Bucket(bucketName)}); err != nil {
		err = errors.Join(err, tx.Rollback())
		e.stuck = false
		return err
	}
	err = tx.Commit()
	e.stuck = false
	if err != nil && full(err) && !e.reached(before) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

// reached reports whether the transaction with this number counts according to the file.
func (e *engine) reached(number int) bool {
	tx, err := e.db.Begin(false)
	if err != nil {
		return true
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID() >= number
}

// full reports whether a failed commit has hit the end of the disk, of a quota or of MaxSize while
// writing. A sync that fails for lack of space is a failure like any other: the system may treat
// its data as written.
func full(err error) bool {
	if errors.Is(err, bbolterrors.ErrMaxSizeReached) {
		return true
	}
	causes := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	var writing *fs.PathError
	resizing := strings.HasPrefix(err.Error(), "file resize error") // bbolt keeps only the text
	for _, c := range causes {
		if errors.As(err, &writing) && errors.Is(err, c) || resizing &&
			strings.Contains(err.Error(), c.Error()) {
			return true
		}
	}
	return false
}

// View implements disk.Engine.
func (e *engine) View() (disk.Snapshot, error) {
	tx, err := e.db.Begin(false)
	if err != nil {
		return nil, err
	}
	return snapshot{e, tx}, nil
}

// Close implements disk.Engine.
func (e *engine) Close() error {
	if e.stuck {
		return e.file.Close() // the mapping stays until the process ends
	}
	return e.db.Close()
}

type transaction struct{ rows *bbolt.Bucket }

func (t transaction) Get(key []byte) ([]byte, error) { return t.rows.Get(key), nil }

func (t transaction) Put(key, value []byte) error { return t.rows.Put(key, value) }

func (t transaction) Delete(key []byte) error { return t.rows.Delete(key) }

type snapshot struct {
	engine *engine
	tx     *bbolt.Tx
}

func (s snapshot) Get(key []byte) ([]byte, error) { return s.tx.Bucket(bucketName).Get(key), nil }

// Rows reads the pages of the transaction directly. The transaction keeps them from being reused.
func (s snapshot) Rows() disk.Cursor {
	high := uint64(s.tx.Size() / pageSize)
	return cursor{newWalk(s.engine.file, uint64(s.tx.Cursor().Bucket().Root()), high)}
}

func (s snapshot) Close() { _ = s.tx.Rollback() }

type cursor struct{ *walk }

// Next implements disk.Cursor.
func (c cursor) Next() (key, sealed []byte, err error) {
	for {
		key, sealed, err = c.next()
		if err != nil || key[0] == disk.RowPrefix {
			return bytes.Clone(key), bytes.Clone(sealed), err
		}
	}
}

// Close implements disk.Cursor.
func (c cursor) Close() {}
