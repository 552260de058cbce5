//go:build unix

package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
)

// polled is a context that a waiter for a lock asks before each try.
type polled struct {
	context.Context
	polls chan struct{}
}

func (p polled) Err() error {
	select {
	case p.polls <- struct{}{}:
	default:
	}
	return p.Context.Err()
}

// TestStore_ComparesUnderTheLock: another process writes while a call waits for its lock. The call
// finds that write, whatever it could have read before.
func TestStore_ComparesUnderTheLock(t *testing.T) {
	record := func(ctx context.Context, s file.Store, old leasestore.Version, n byte) (
		leasestore.Version, error) {
		return s.Swap(ctx, "x", old, leasestore.Record{Token: coordination.Token(n)})
	}
	document := func(ctx context.Context, s file.Store, old leasestore.Version, n byte) (
		leasestore.Version, error) {
		return s.SwapDocument(ctx, "x", old, []byte{n})
	}
	type swap func(context.Context, file.Store, leasestore.Version, byte) (leasestore.Version,
		error)
	for name, c := range map[string]struct {
		file        string
		write, call swap
	}{
		"Swap":         {"n-x.lease", record, record},
		"SwapDocument": {"n-x.document", document, document},
		"Remove": {"n-x.lease", record, func(ctx context.Context, s file.Store,
			old leasestore.Version, _ byte) (leasestore.Version, error) {
			return "", s.Remove(ctx, "x", old)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			path := filepath.Join(dir, c.file)
			var files [2][]byte
			var old, last leasestore.Version
			for i := range files {
				next, err := c.write(t.Context(), s, last, byte(i+1))
				if err != nil {
					t.Fatal(err)
				}
				if files[i], err = os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
				old, last = last, next
			}
			put := func(data []byte) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(files[0])
			release := hold(t, filepath.Join(dir, "n-x.lock"))
			ctx := polled{t.Context(), make(chan struct{})}
			outcome := make(chan error, 1)
			go func() {
				_, err := c.call(ctx, s, old, 3)
				outcome <- err
			}()
			for range 2 { // the first try has failed
				select {
				case <-ctx.polls:
				case err := <-outcome:
					t.Fatalf("did not wait for the lock: %v", err)
				}
			}
			put(files[1])
			release()
			if err := <-outcome; !errors.Is(err, leasestore.ErrConflict) {
				t.Errorf("overwrote what it has not read: %v", err)
			}
		})
	}
}

// hold takes the lock as another process does.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() }
}
