package file

import (
	"context"
	"strings"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

const (
	// abandoned is the age at which Open removes a session record that is no longer written: no TTL
	// is that long.
	abandoned = 48 * time.Hour
	// sweepMost bounds the number of files that Open examines, and sweepTime the time it takes.
	sweepMost = 10_000
	sweepTime = time.Second
)

// sweep removes the records of sessions that crashed while no contender wanted their leases. It
// uses the wall clock. If that is wrong, the session concerned loses its leases, as it does when an
// operator deletes its record, but two sessions never hold one lease. Records that cannot be
// removed stay.
func (s *store) sweep(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	for _, path := range s.abandonedRecords(now) {
		data, err := readBounded(s.root, path, maxRecord)
		if err != nil {
			continue
		}
		e, err := decode(data)
		if err != nil || !strings.HasPrefix(e.Name, leasestore.SessionRecords) ||
			base(e.Name)+recordSuffix != path {
			continue
		}
		_ = s.Remove(ctx, e.Name, e.version())
	}
}

func (s *store) abandonedRecords(now time.Time) (paths []string) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(sweepMost) // as many as it could read before an error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base(leasestore.SessionRecords)) ||
			!strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > abandoned {
			paths = append(paths, e.Name())
		}
	}
	return paths
}
