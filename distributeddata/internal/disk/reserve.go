package disk

import (
	"fmt"

	"github.com/concord-go/concord/distributeddata/store"
)

// Reserve keeps space free on the disk of a directory.
type Reserve struct {
	Dir  string
	Free func(dir string) (int64, error) // FreeSpace, except in tests

	full bool // too little was free, and there has not been enough since
}

// Check returns an error that wraps store.ErrFull if less than need bytes are free. After that it
// requires a quarter more.
func (r *Reserve) Check(need int64) error {
	free, err := r.Free(r.Dir)
	if err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	if r.full {
		need += need / 4
	}
	if r.full = free < need; r.full {
		return fmt.Errorf("directory %s: %w: %d bytes are free, commits need %d", r.Dir,
			store.ErrFull, free, need)
	}
	return nil
}
