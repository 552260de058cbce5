package bbolt

import (
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
	var e *engine
	s, err := disk.Open(disk.Kind{Name: "bbolt", Ours: ours}, dir, cfg.Logger,
		func(s *disk.Store) (disk.Engine, error) {
			var newestDamaged bool
			var err error
			if e, newestDamaged, err = openEngine(dir, cfg); err != nil {
				return nil, err
			}
			if newestDamaged {
				s.Lost("one of the two heads of " + fileName +
					" is damaged, so that the last commit may be missing")
			}
			return e, nil
		})
	if err != nil {
		return nil, err
	}
	return &db{s, e}, nil
}
