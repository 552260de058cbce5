package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
)

// Open opens a directory with the store that made it. The key is badger.Config.Key, or nil if there
// is none. Errors are those of badger.Open and bbolt.Open. For a directory of neither store Open
// returns store.ErrForeign, and creates nothing.
func Open(dir string, key []byte) (store.Store, error) {
	kind, err := disk.KindOf(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: directory %s is not a store: %w", store.ErrForeign, dir, err)
	}
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler) // Load reports problems
	switch kind {
	case "badger":
		s, err := badger.Open(dir, badger.Config{Key: key, Logger: quiet})
		if err != nil {
			return nil, err
		}
		return s, nil
	case "bbolt":
		s, err := bbolt.Open(dir, bbolt.Config{Logger: quiet})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w: directory %s belongs to the store %q, which this version does not know, or its file %s is damaged",
		store.ErrForeign, dir, kind, disk.AnchorName)
}
