package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// The pauses between attempts to lock double from firstPause to lastPause.
const (
	firstPause = 500 * time.Microsecond
	lastPause  = 20 * time.Millisecond
)

// lockFile is a lock that is held. The kernel releases the lock when the file is closed, also by
// the end of the process. A lock on a deleted file excludes nobody, so lock checks for that after
// it has the lock.
type lockFile struct {
	f     *os.File
	token coordination.Token // the largest token written
}

// lock waits for the lock of a name until ctx ends. It fails if the directory has been replaced.
func (s *store) lock(ctx context.Context, name string) (*lockFile, error) {
	for {
		f, err := s.root.OpenFile(base(name)+lockSuffix, os.O_RDWR|os.O_CREATE|nonblock, 0o600)
		if err != nil {
			return nil, fmt.Errorf("file: lease %q: %w", name, err)
		}
		if err := flock(ctx, f); err != nil {
			return nil, errors.Join(fmt.Errorf("file: lock of lease %q: %w", name, err), f.Close())
		}
		if s.replaced(f, name) {
			_ = f.Close()
			continue // ctx bounds it
		}
		l := &lockFile{f: f}
		l.token, err = s.lastToken(name)
		if err := errors.Join(s.inPlace(), err); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return l, nil
	}
}

// replaced reports whether the lock file has been removed since it was opened.
func (s *store) replaced(f *os.File, name string) bool {
	held, err := f.Stat()
	if err != nil {
		return true
	}
	present, err := s.root.Stat(base(name) + lockSuffix)
	return err != nil || !os.SameFile(held, present)
}

// flock polls without blocking in the kernel, so that no thread hangs there after ctx has ended.
//
// The first try comes before the timer: a timer that is due when it is read runs its send under the
// reader, and two readers at once in a synctest bubble crash the race detector (Go 1.26).
func flock(ctx context.Context, f *os.File) error {
	var pause *time.Timer
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if held, err := tryFlock(f); held || err != nil {
			return err
		}
		if pause == nil {
			pause = time.NewTimer(wait)
			defer pause.Stop()
		} else {
			pause.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
}

func (l *lockFile) release() { _ = l.f.Close() }

// keepToken writes a larger token into the lock file before the record contains it, so that tokens
// grow even if the record is deleted. The number has a fixed width, so a torn write is never a
// smaller number.
func (l *lockFile) keepToken(t coordination.Token) error {
	if t <= l.token {
		return nil
	}
	if _, err := l.f.WriteAt(fmt.Appendf(nil, "%020d\n", uint64(t)), 0); err != nil {
		return err
	}
	return l.f.Sync()
}

// lastToken reads that token; it is 0 if no tenure has begun.
func (s *store) lastToken(name string) (coordination.Token, error) {
	path := base(name) + lockSuffix
	data, err := readBounded(s.root, path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("file: lease %q: %w", name, err)
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(string(data), "\n"), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%w: file: lease %q: token in %s: %w",
			leasestore.ErrDamaged, name, path, err)
	}
	return coordination.Token(n), nil
}
