package badger

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/dgraph-io/badger/v4"

	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
)

// db is a store.Store in a directory. Use Open to create one.
type db struct {
	*disk.Store
	engine *engine
}

var _ store.Store = (*db)(nil)

// Open opens the directory, and creates it if it does not exist, with access for this user only.
// Open never deletes data in order to succeed. Its error says what to do, and wraps
//
//   - store.ErrLocked: another store has the directory open;
//   - store.ErrForeign: the directory holds something else, or data of a later version;
//   - store.ErrWrongKey: the directory is encrypted with another key, or only one of directory and
//     Config is encrypted;
//   - store.ErrCorrupt: the directory is too damaged to be opened;
//   - store.ErrInvalid: the Config is not valid, others may write to the directory, or this user
//     may not.
func Open(dir string, cfg Config) (store.Store, error) {
	s, err := open(dir, cfg)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func open(dir string, cfg Config) (*db, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	e := &engine{reserve: disk.Reserve{Dir: dir, Free: disk.FreeSpace}, least: cfg.Reserve}
	s, err := disk.Open(disk.Kind{Name: "badger", Ours: ours}, dir, cfg.Logger,
		func(s *disk.Store) (disk.Engine, error) {
			o := badgerOptions(dir, cfg.Key, &logger{s, e})
			if err := tidy(dir); err != nil {
				return nil, err
			}
			if err := verify(o); err != nil {
				return nil, err
			}
			var err error
			if e.db, err = badger.Open(o); err != nil {
				return nil, openError(err)
			}
			return e, nil
		})
	if err != nil {
		return nil, err
	}
	return &db{s, e}, nil
}

// openError classifies an error of Badger: one that is not of the system concerns the files.
func openError(err error) error {
	var system syscall.Errno
	switch {
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return fmt.Errorf("%w: %w", store.ErrLocked, err)
	case errors.As(err, &system):
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
}
