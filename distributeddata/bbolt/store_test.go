package bbolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var config = Config{Logger: slog.New(slog.DiscardHandler)}

func mustOpen(t *testing.T, dir string) *db {
	t.Helper()
	s, err := open(dir, config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "rows") }

func puts(pairs ...string) *store.Batch {
	b := &store.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Put(pairs[i], []byte(pairs[i+1]))
	}
	return b
}

func load(s *db) (map[string]string, error) {
	rows, all := map[string]string{}, error(nil)
	for r, err := range s.Load(context.Background()) {
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		rows[r.Key] = string(r.Value)
	}
	return rows, all
}

// copyDir copies the files as another process would find them if this one were killed now. It
// copies the anchor first, since that must not be newer than the rest. It reads the heads of the
// file again after its pages, since pages are reused once later heads count.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	for {
		to := newDir(t)
		require.NoError(t, os.MkdirAll(to, 0o700))
		anchor, err := os.ReadFile(filepath.Join(from, disk.AnchorName))
		require.NoError(t, err)
		rows, err := os.ReadFile(filepath.Join(from, fileName))
		require.NoError(t, err)
		f, err := os.Open(filepath.Join(from, fileName))
		require.NoError(t, err)
		heads := make([]byte, 2*pageSize)
		_, err = io.ReadFull(f, heads)
		require.NoError(t, errors.Join(err, f.Close()))
		if !bytes.Equal(heads, rows[:len(heads)]) {
			continue // no disk ever held this state
		}
		require.NoError(t, os.WriteFile(filepath.Join(to, disk.AnchorName), anchor, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(to, fileName), rows, 0o600))
		return to
	}
}

// change edits the file of a closed store.
func change(t *testing.T, dir string, edit func(raw []byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, edit(raw), 0o600))
}

// flip changes a bit of every copy of a key's value in the file.
func flip(t *testing.T, dir, key string) {
	t.Helper()
	s := mustOpen(t, dir)
	rows, err := load(s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	sealed, found := disk.Seal([]byte("r"+key), []byte(rows[key])), 0
	change(t, dir, func(raw []byte) []byte {
		for at := 0; ; found++ {
			i := bytes.Index(raw[at:], sealed)
			if i < 0 {
				return raw
			}
			at += i + len(sealed)
			raw[at-1] ^= 1
		}
	})
	require.Positive(t, found, "the row is not in the file")
}

// lead makes the descriptor that bbolt writes to refer to a device. It returns another descriptor
// for the file, which holds bbolt's lock.
func lead(t *testing.T, s *db, path string) (kept int) {
	t.Helper()
	fd := int(s.engine.file.Fd())
	kept, err := syscall.Dup(fd)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Dup2(int(f.Fd()), fd))
	require.NoError(t, f.Close())
	return kept
}

func TestStore_Conforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Disk {
		dir := newDir(t)
		var last *db
		return storetest.Disk{
			Open: func() (store.Store, error) {
				s, err := open(dir, config)
				if err != nil {
					return nil, err
				}
				last = s
				t.Cleanup(func() { _ = s.Close() })
				return s, nil
			},
			Crash: func() { dir = copyDir(t, dir) },
			// Accepts writes, but cannot be synced.
			FailSync: func() { require.NoError(t, syscall.Close(lead(t, last, "/dev/null"))) },
			Flip:     func(key string) { flip(t, dir, key) },
		}
	})
}

// A disk without space rejects a write in the middle of a commit, and everything committed before
// stays in place.
func TestCommit_GoesOnAfterTheDiskWasFull(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	kept := lead(t, s, "/dev/full")
	for range 3 {
		require.ErrorIs(t, s.Commit(t.Context(), puts("a", "2", "b", "2")), store.ErrFull)
	}
	require.NoError(t, unix.Dup2(kept, int(s.engine.file.Fd())))
	require.NoError(t, syscall.Close(kept))
	rows, err := load(s)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, rows)
	require.NoError(t, s.Commit(t.Context(), puts("c", "3")))
	require.NoError(t, s.Close())
	rows, err = load(mustOpen(t, dir))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "c": "3"}, rows)
}

func TestCommit_RefusesWhileTheDiskIsNearlyFull(t *testing.T) {
	s := mustOpen(t, newDir(t))
	const least = 16 << 20
	for _, step := range []struct {
		free int64
		ok   bool
	}{
		// after a refusal a quarter more
		{least, true}, {least - 1, false}, {least, false}, {least * 5 / 4, true}, {least, true},
	} {
		s.engine.reserve.Free = func(string) (int64, error) { return step.free, nil }
		if err := s.Commit(t.Context(), puts("a", "1")); step.ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, store.ErrFull)
		}
	}
	s.engine.reserve.Free = func(string) (int64, error) { return 0, io.ErrUnexpectedEOF }
	require.ErrorIs(t, s.Commit(t.Context(), puts("a", "2")), store.ErrFailed)
}

// MaxSize is a limit like the size of the disk, and space freed by deletes is reused. Loads do not
// wait for the file to grow.
func TestCommit_EndsAtMaxSize(t *testing.T) {
	dir := newDir(t)
	s, err := open(dir, Config{MaxSize: leastSize, Logger: config.Logger})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	megabyte, n := strings.Repeat("m", 1_000_000), 0
	for err = error(nil); err == nil; n++ {
		require.Less(t, n, 70)
		for _, loadErr := range s.Load(t.Context()) { // in progress meanwhile
			require.NoError(t, loadErr)
			err = s.Commit(t.Context(), puts(fmt.Sprintf("%03d", n), megabyte))
			break
		}
		if n == 0 {
			err = s.Commit(t.Context(), puts("000", megabyte))
		}
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.Greater(t, n, 40)
	b := &store.Batch{}
	for i := range 10 {
		b.Delete(fmt.Sprintf("%03d", i))
	}
	require.NoError(t, s.Commit(t.Context(), b))
	require.NoError(t, s.Commit(t.Context(), puts("999", "small")))
	require.NoError(t, s.Commit(t.Context(), puts("998", megabyte)))
	require.NoError(t, s.Close())
	rows, err := load(mustOpen(t, dir))
	require.NoError(t, err)
	require.Len(t, rows, n-1-10+2)
}

// bbolt silently falls back to the older head. Load reports it until the head has been written
// again.
func TestLoad_TellsOfADamagedHead(t *testing.T) {
	for i := range 2 {
		dir := newDir(t)
		s := mustOpen(t, dir)
		for n := range 5 {
			require.NoError(t, s.Commit(t.Context(), puts("a", fmt.Sprint(n))))
		}
		require.NoError(t, s.Close())
		change(t, dir, func(raw []byte) []byte { raw[i*pageSize+pageHeader+40] ^= 1; return raw })
		s = mustOpen(t, dir)
		rows, err := load(s)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.Contains(t, []string{"3", "4"}, rows["a"])
		require.NoError(t, s.Commit(t.Context(), puts("a", "5")))
		require.NoError(t, s.Close())
		_, err = load(mustOpen(t, dir))
		require.NoError(t, err)
	}
}

// bbolt trusts its pages. Open rejects a file that is not a valid tree before bbolt reads it, and
// leaves it unchanged.
func TestOpen_RefusesWhatIsNotATree(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	for i := range 400 {
		require.NoError(t, s.Commit(t.Context(), puts(fmt.Sprintf("%04d", i),
			strings.Repeat("v", 100))))
	}
	require.NoError(t, s.Close())
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	require.NoError(t, err)
	m, _, err := readMeta(bytes.NewReader(whole))
	require.NoError(t, err)
	root, err := readPage(bytes.NewReader(whole), m.root, m.high, nil)
	require.NoError(t, err)
	branch := native.Uint64(root.value(0))
	at := int(branch) * pageSize
	for name, c := range map[string]struct {
		edit func(raw []byte) []byte
		says string
	}{
		"both heads": {func(raw []byte) []byte {
			raw[pageHeader+20] ^= 1
			raw[pageSize+pageHeader+20] ^= 1
			return raw
		}, "both heads"},
		"truncated": {func(raw []byte) []byte {
			return raw[:(m.high-1)*pageSize]
		}, "should have"},
		"empty": {func([]byte) []byte { return nil }, "both heads"},
		"leads to itself": {func(raw []byte) []byte {
			binary.NativeEndian.PutUint64(raw[at+pageHeader+8:], branch)
			return raw
		}, "keys of another"},
		"leads nowhere": {func(raw []byte) []byte {
			raw[at+pageHeader+8+5] = 1
			return raw
		}, "is not one of"},
		"of another kind": {func(raw []byte) []byte {
			raw[at+8] = 4
			return raw
		}, "neither leaf nor branch"},
		"too many": {func(raw []byte) []byte {
			raw[at+11] = 0xff
			return raw
		}, "elements in"},
		"beyond the page": {func(raw []byte) []byte {
			raw[at+pageHeader+2] = 1
			return raw
		}, "in a page of"},
		"a huge key": {func(raw []byte) []byte {
			raw[at+pageHeader+7] = 0x7f
			return raw
		}, "a key of"},
		"a long page": {func(raw []byte) []byte {
			raw[at+14] = 0xff
			return raw
		}, "further pages"},
	} {
		t.Run(name, func(t *testing.T) {
			left := newDir(t)
			require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
			require.NoError(t, os.Chmod(left, 0o700))
			change(t, left, c.edit)
			before, err := os.ReadFile(filepath.Join(left, fileName))
			require.NoError(t, err)
			for range 2 { // nothing stays locked
				_, err = open(left, config)
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "move it away")
			}
			after, err := os.ReadFile(filepath.Join(left, fileName))
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestOpen_SaysWhatIsWrongWithTheConfig(t *testing.T) {
	_, err := open(newDir(t), Config{Reserve: 1, MaxSize: 2})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "Reserve (1) must be from 1048576")
	require.ErrorContains(t, err, "MaxSize (2) must be from 67108864")
}

// A file that was being created when the process ended was never used.
func TestOpen_BeginsAgainAfterACrashInTheFirst(t *testing.T) {
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, disk.AnchorName), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, newName), []byte("half"), 0o600))
	s := mustOpen(t, dir)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	require.NoError(t, s.Close())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

// Rows that are added and deleted leave their pages to later ones.
func TestFile_DoesNotGrowWithChurn(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, fileName))
		require.NoError(t, err)
		return info.Size()
	}
	churn := func(rounds int) {
		for i := range rounds {
			b := puts()
			for k := range 1000 {
				b.Put(fmt.Sprint(i%3, k), []byte("some value or other"))
				b.Delete(fmt.Sprint((i+1)%3, k))
			}
			require.NoError(t, s.Commit(t.Context(), b))
		}
	}
	churn(10)
	before := size()
	churn(100)
	require.Equal(t, before, size())
}
