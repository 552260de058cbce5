package file

import (
	"context"
	"strings"
	"time"

	"github.com/concord-go/concord/coordination"
)

const (
	// abandoned is how long a session record has not been written until Open removes it: no TTL is as long.
	abandoned = 48 * time.Hour
	// sweepMost bounds the files that Open looks at, and sweepTime the time it takes.
	sweepMost = 10_000
	sweepTime = time.Second
)

// sweep removes the records of sessions that crashed while nobody wanted their leases. It goes by the wall clock: if
// that is wrong, the session concerned loses its leases, as it does when an operator deletes its record, and still
// no two hold one. What it cannot remove stays.
func (s *Store) sweep(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	for _, path := range s.abandonedRecords(now) {
		data, err := readBounded(s.root, path, maxRecord)
		if err != nil {
			continue
		}
		e, err := decode(data)
		if err != nil || !strings.HasPrefix(e.Name, coordination.SessionRecords) || base(e.Name)+recordSuffix != path {
			continue
		}
		_ = s.Remove(ctx, e.Name, e.version())
	}
}

func (s *Store) abandonedRecords(now time.Time) (paths []string) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(sweepMost) // as many as it could read
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base(coordination.SessionRecords)) || !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > abandoned {
			paths = append(paths, e.Name())
		}
	}
	return paths
}
