//go:build unix

package file_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

// TestMain turns this binary into a holder of leases if takeover.Run has started it.
func TestMain(m *testing.M) {
	if dir, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(dir))
		os.Exit(1)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// holdAll holds the leases of takeover.Run.
func holdAll(dir string) error {
	s, err := file.Open(dir)
	if err != nil {
		return err
	}
	return takeover.Hold(s)
}

func TestConformance(t *testing.T) {
	dirs := sync.Map{} // of the stores
	begin := func(t *testing.T, dir string) leasestore.Store {
		s := open(t, dir)
		dirs.Store(s, dir)
		return s
	}
	dir := func(s leasestore.Store) string {
		d, _ := dirs.Load(s)
		return d.(string)
	}
	path := func(s leasestore.Store, name string) string { return recordFile(t, dir(s), name) }
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return begin(t, ramDir(t))
	}, leasetest.Options{
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			return begin(t, dir(s)), nil
		},
		Delete: func(s leasestore.Store, name string) error { return os.Remove(path(s, name)) },
		Damage: func(s leasestore.Store, name string) error {
			return os.Truncate(path(s, name), 20)
		},
	})
}

// ramDir returns a directory in memory, if the system has one: the suite writes thousands of
// records, and does not test disks.
func ramDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "concord-") //nolint:usetesting // if it does not exist
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// recordFile returns the file whose contents name the lease.
func recordFile(t *testing.T, dir, name string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*.lease"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data),
			strconv.Quote(name)) {
			return path
		}
	}
	t.Errorf("no record of %s", name)
	return "none"
}

func open(t testing.TB, dir string) file.Store {
	s, err := file.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
