//go:build unix

package file_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
)

func write(t *testing.T, s file.Store, old leasestore.Version,
	token coordination.Token) leasestore.Version {
	t.Helper()
	ver, err := s.Swap(t.Context(), "x", old, leasestore.Record{Owner: "o", Nonce: "n",
		Token: token, TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return ver
}

// A user who may write to the directory can give any lease away.
func TestOpen_DirectoryOfOthersIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o770, 0o702, 0o1777} {
		dir := filepath.Join(t.TempDir(), "leases")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		_, err := file.Open(dir)
		if !errors.Is(err, coordination.ErrInvalid) || !strings.Contains(err.Error(),
			"chmod go-w") {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := os.Chmod(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		open(t, dir)
		if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
			t.Errorf("mode %v after opening", info.Mode())
		}
	}
}

func TestOpen_SaysThatTheParentIsMissing(t *testing.T) {
	_, err := file.Open(filepath.Join(t.TempDir(), "shop", "leases"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "the parent must exist") {
		t.Errorf("%v", err)
	}
}

func TestOpen_AnEmptyNameIsInvalid(t *testing.T) {
	if _, err := file.Open(""); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestStore_PermissionsAndNoLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leases")
	write(t, open(t, dir), "", 1)
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory %v", info.Mode())
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("files %v", entries)
	}
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s %v", e.Name(), info.Mode())
		}
	}
}

// TestStore_DamageIsUnknownNotTaken cuts, flips and replaces a record.
func TestStore_DamageIsUnknownNotTaken(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	write(t, s, "", 1)
	path := filepath.Join(dir, "n-x.lease")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"empty": "", "garbage": "hello\n", "huge": strings.Repeat("x", 1<<20),
		"other name":    otherName(t),
		"later format":  strings.Replace(string(good), "concord-lease 1", "concord-lease 2", 1),
		"cut":           string(good[:len(good)-2]),
		"changed value": strings.Replace(string(good), `"token":1`, `"token":2`, 1),
	}
	session, err := coordination.Open(s, coordination.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Load(t.Context(), "x"); !errors.Is(err, leasestore.ErrDamaged) {
				t.Errorf("load: %v", err)
			}
			_, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 9})
			if !errors.Is(err, leasestore.ErrDamaged) || !errors.Is(err, leasestore.ErrRefused) {
				t.Errorf("swap: %v", err)
			}
			_, err = session.Lease("x").TryAcquire(t.Context())
			if !errors.Is(err, coordination.ErrUnknown) || !errors.Is(err, leasestore.ErrDamaged) ||
				errors.Is(err, coordination.ErrHeld) {
				t.Errorf("acquire: %v", err)
			}
			if left, _ := os.ReadFile(path); string(left) != content {
				t.Error("the file was changed")
			}
		})
	}
}

func otherName(t *testing.T) string {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.Swap(t.Context(), "y", "", leasestore.Record{Token: 1}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "n-y.lease"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestStore_ForeignFiles replaces a record and a document by a directory, a named pipe and a link
// that leads out of the directory.
func TestStore_ForeignFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, open(t, filepath.Dir(outside)), "", 1)
	for suffix, load := range map[string]func() error{
		".lease":    func() error { _, _, err := s.Load(t.Context(), "x"); return err },
		".document": func() error { _, _, err := s.LoadDocument(t.Context(), "x"); return err },
	} {
		path := filepath.Join(dir, "n-x"+suffix)
		for name, put := range map[string]func() error{
			"directory": func() error { return os.Mkdir(path, 0o700) },
			"pipe":      func() error { return unix.Mkfifo(path, 0o600) },
			"link": func() error {
				return os.Symlink(filepath.Join(filepath.Dir(outside), "n-x.lease"), path)
			},
		} {
			t.Run(name+suffix, func(t *testing.T) {
				if err := put(); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(path)
				if err := load(); err == nil {
					t.Error("loaded")
				}
			})
		}
	}
}

// TestStore_DeletedRecord: after a deletion the store continues with larger tokens and new
// versions.
func TestStore_DeletedRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	v1 := write(t, s, "", 41)
	if err := os.Remove(filepath.Join(dir, "n-x.lease")); err != nil {
		t.Fatal(err)
	}
	rec, ver, err := s.Load(t.Context(), "x")
	if (rec != leasestore.Record{Token: 41}) || ver != "" || err != nil {
		t.Errorf("got %+v %q %v", rec, ver, err)
	}
	session, err := coordination.Open(s, coordination.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	g, err := session.Lease("x").TryAcquire(t.Context())
	if err != nil || g.Token() != 42 {
		t.Fatalf("got %v %v", g, err)
	}
	if _, err := s.Swap(t.Context(), "x", v1, leasestore.Record{}); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("a version came back: %v", err)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestStore_BlockedLock: a blocked call returns when its context ends, and leaves nothing running.
func TestStore_BlockedLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ver := write(t, s, "", 1)
	release := hold(t, filepath.Join(dir, "n-x.lock"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Swap(ctx, "x", ver, leasestore.Record{Token: 1})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.Load(t.Context(), "x"); err != nil {
		t.Errorf("load behind a lock: %v", err)
	}
	release()
	write(t, s, ver, 1)
}

// TestStore_LeftoverOfAKill tests a temporary file that was never renamed.
func TestStore_LeftoverOfAKill(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ver := write(t, s, "", 1)
	if err := os.WriteFile(filepath.Join(dir, "n-x.new"), []byte("half a rec"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, got, err := s.Load(t.Context(), "x"); got != ver || err != nil {
		t.Errorf("got %q %v", got, err)
	}
	write(t, s, ver, 2)
}

func TestOpen_NeedsAParent(t *testing.T) {
	if _, err := file.Open(filepath.Join(t.TempDir(), "a", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s, err := coordination.Open(open(b, b.TempDir()), coordination.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Lease("lease").TryAcquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A lock on a file that was removed meanwhile excludes no process: the file is created only after a
// removal.
func TestStore_RemovedLockIsNotHeld(t *testing.T) {
	s := open(t, t.TempDir())
	var created, removed atomic.Int64
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 100 {
				version, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 1})
				switch {
				case errors.Is(err, leasestore.ErrConflict):
					continue
				case err != nil:
					t.Errorf("swap: %v", err)
					return
				}
				if n := created.Add(1) - removed.Load(); n != 1 {
					t.Errorf("%d records of one name", n)
				}
				removed.Add(1)
				if err := s.Remove(t.Context(), "x", version); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
		})
	}
	work.Wait()
	if created.Load() < 2 {
		t.Errorf("%d records made", created.Load())
	}
}

// TestOpen_RemovesRecordsOfSessionsLongDead: their files are removed, and other files stay.
func TestOpen_RemovesRecordsOfSessionsLongDead(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dead, alive, lease := leasestore.SessionRecords+"dead", leasestore.SessionRecords+
		"alive", "billing"
	for _, name := range []string{dead, alive, lease} {
		if _, err := s.Swap(t.Context(), name, "", leasestore.Record{Nonce: "n", Token: 1,
			TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	for name, age := range map[string]time.Duration{dead: 49 * time.Hour, alive: 47 * time.Hour,
		lease: 10_000 * time.Hour} {
		then := time.Now().Add(-age)
		if err := os.Chtimes(recordFile(t, dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, dir)
	for name, stays := range map[string]bool{dead: false, alive: true, lease: true} {
		if _, ver, err := again.Load(t.Context(), name); (ver != "") != stays || err != nil {
			t.Errorf("%s: version %q, %v", name, ver, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*dead*")); len(left) > 0 || err != nil {
		t.Errorf("left %v %v", left, err)
	}
}

// A process whose directory is moved away, or replaced by a backup, writes into it no more: another
// process already works in the directory of that name.
func TestStore_ReplacedDirectoryIsRefused(t *testing.T) {
	parent := t.TempDir()
	dir, aside := filepath.Join(parent, "leases"), filepath.Join(parent, "aside")
	for name, replace := range map[string]func() error{
		"moved":    func() error { return nil },
		"replaced": func() error { return os.Mkdir(dir, 0o700) },
		"file":     func() error { return os.WriteFile(dir, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, dir)
			defer os.RemoveAll(dir)
			defer os.RemoveAll(aside)
			ver := write(t, s, "", 1)
			doc, err := s.SwapDocument(t.Context(), "x", "", []byte("one"))
			if err := errors.Join(err, os.Rename(dir, aside), replace()); err != nil {
				t.Fatal(err)
			}
			_, err = s.Swap(t.Context(), "x", ver, leasestore.Record{Token: 1})
			refuses(t, "swap", dir, err)
			_, err = s.SwapDocument(t.Context(), "x", doc, []byte("two"))
			refuses(t, "document", dir, err)
			refuses(t, "remove", dir, s.Remove(t.Context(), "x", ver))

			if err := errors.Join(os.RemoveAll(dir), os.Rename(aside, dir)); err != nil {
				t.Fatal(err)
			}
			write(t, s, ver, 1)
		})
	}
}

func refuses(t *testing.T, what, dir string, err error) {
	t.Helper()
	if !errors.Is(err, leasestore.ErrRefused) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%s: %v", what, err)
	}
}

// A relative directory stays the same when the process changes its own.
func TestStore_RelativeDirectoryStaysTheSame(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "leases")
	t.Chdir(t.TempDir())
	write(t, s, "", 1)
}

// TestStore_RestoreOfABackup: two processes never hold one lease, although the directory is
// replaced by an older copy while the first one holds it.
func TestStore_RestoreOfABackup(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "leases")
	cfg := coordination.Config{TTL: time.Second}
	first, err := coordination.Open(open(t, dir), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close(t.Context())
	g, err := first.Lease("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+".aside"),
		os.CopyFS(dir, os.DirFS(dir+".aside")), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	second, err := coordination.Open(open(t, dir), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(t.Context())
	next, err := second.Lease("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if g.Check() == nil || next.Check() != nil {
		t.Errorf("both hold it: %v, %v", g, next)
	}
	if next.Token() <= g.Token() {
		t.Errorf("%v after %v", next, g)
	}
}
