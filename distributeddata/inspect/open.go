package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
)

// Open opens a copy of a directory with the store that made it. The key is badger.Config.Key, or
// nil if there is none. Errors are those of badger.Open and bbolt.Open. For a directory of neither
// store Open returns store.ErrForeign, and creates nothing.
func Open(dir string, key []byte) (store.Store, error) {
	kind, err := disk.KindOf(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: directory %s is not a store: %w", store.ErrForeign, dir, err)
	}
	if err != nil {
		return nil, err
	}
	open, known := openers[kind]
	if !known {
		return nil, fmt.Errorf("%w: directory %s belongs to the store %q, which this version does not know, or its file %s is damaged",
			store.ErrForeign, dir, kind, disk.AnchorName)
	}
	c := &copied{}
	if c.copy, err = os.MkdirTemp("", "concord-inspect-"); err != nil {
		return nil, fmt.Errorf("inspect: copy of directory %s: %w", dir, err)
	}
	if err = disk.Copy(c.copy, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("inspect: %w", err), os.RemoveAll(c.copy))
	}
	if c.Store, err = open(c.copy, key); err != nil {
		return nil, errors.Join(fmt.Errorf("inspect: copy of directory %s: %w", dir, err),
			os.RemoveAll(c.copy))
	}
	return c, nil
}

// openers opens a directory of each kind. Load reports problems, so the stores log none.
var openers = map[string]func(dir string, key []byte) (store.Store, error){
	"badger": func(dir string, key []byte) (store.Store, error) {
		return badger.Open(dir, badger.Config{Key: key, Logger: slog.New(slog.DiscardHandler)})
	},
	"bbolt": func(dir string, _ []byte) (store.Store, error) {
		return bbolt.Open(dir, bbolt.Config{Logger: slog.New(slog.DiscardHandler)})
	},
}

// copied is a store over a copy of a directory.
type copied struct {
	store.Store
	copy string
}

// Close closes the store and deletes the copy.
func (c *copied) Close() error { return errors.Join(c.Store.Close(), os.RemoveAll(c.copy)) }
