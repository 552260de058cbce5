package file

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// watchInterval bounds the delay until a release is noticed. Each check is one stat call.
const watchInterval = 50 * time.Millisecond

// Watch implements leasestore.Watcher by checking whether the record is another file: every write
// creates a new one.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		path := base(name) + recordSuffix
		var seen fs.FileInfo
		for first := true; ; first = false {
			info, _ := s.root.Stat(path) // Load reports an error
			if first || !same(info, seen) {
				seen = info
				record, _, err := s.Load(ctx, name)
				if !yield(record, err) || err != nil {
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
