package badger

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
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/distributeddata/internal/disk"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var config = Config{Reserve: minReserve, Logger: slog.New(slog.DiscardHandler)}

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
// retries if files were created or deleted meanwhile, a state that no kill can produce.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	manifest := func() string {
		raw, err := os.ReadFile(filepath.Join(from, "MANIFEST"))
		require.NoError(t, err)
		return string(raw)
	}
	for {
		to, before, files := newDir(t), manifest(), list(t, from)
		require.NoError(t, os.MkdirAll(to, 0o700))
		for _, f := range files {
			copyFile(t, f, filepath.Join(to, filepath.Base(f)))
		}
		if slices.Equal(files, list(t, from)) && manifest() == before {
			return to
		}
	}
}

// list returns the files of a directory, the anchor first, since the copied anchor must not be
// newer than the log.
func list(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	slices.SortStableFunc(files, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, disk.AnchorName),
			strings.TrimSuffix(b, disk.AnchorName))
	})
	return files
}

// copyFile copies up to the first megabyte of zeros, since the files are much larger than their
// content.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return // deleted meanwhile
	}
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	require.NoError(t, err)
	out, err := os.Create(to)
	require.NoError(t, err)
	buffer, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(in, buffer)
		if n == 0 || bytes.Equal(buffer[:n], zeros[:n]) {
			break
		}
		_, werr := out.Write(buffer[:n])
		require.NoError(t, werr)
		if err != nil {
			break
		}
	}
	require.NoError(t, out.Truncate(info.Size()))
	require.NoError(t, out.Close())
}

// flip changes a bit of the value of a key in the tables on disk.
func flip(t *testing.T, dir, key string) {
	t.Helper()
	s := mustOpen(t, dir)
	rows, err := load(s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	sealed, found := disk.Seal([]byte("r"+key), []byte(rows[key])), false
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	for _, f := range tables {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		if i := bytes.Index(raw, sealed); i >= 0 {
			raw[i+len(sealed)-1] ^= 1
			require.NoError(t, os.WriteFile(f, raw, 0o600))
			found = true
		}
	}
	require.True(t, found, "the row is in no table")
}

func TestStore_Conforms(t *testing.T) {
	t.Parallel() // it waits for the disk
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
			// Only the disk can make Badger fail; its failures arrive like this.
			FailSync: func() {
				(&logger{last.Store, last.engine}).Errorf("while syncing %s: %v", "value log",
					io.ErrShortWrite)
			},
			Flip: func(key string) { flip(t, dir, key) },
		}
	})
}

// A kill while a log is created or deleted leaves the log empty, and the directory can still be
// opened. If damage has emptied a log, Load reports it.
func TestKill_WhileALogIsMadeOrDeleted(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	for _, log := range []string{"00000.mem", "99999.mem", "000000.vlog", "999999.vlog"} {
		killed := copyDir(t, dir)
		require.NoError(t, os.WriteFile(filepath.Join(killed, log), nil, 0o600))
		rows, err := load(mustOpen(t, killed))
		require.NoError(t, err, log)
		require.Equal(t, map[string]string{"a": "1"}, rows, log)
	}
	damaged := copyDir(t, dir)
	logs, err := filepath.Glob(filepath.Join(damaged, "*.mem"))
	require.NoError(t, err)
	for _, log := range logs {
		require.NoError(t, os.Truncate(log, 0))
	}
	rows, err := load(mustOpen(t, damaged))
	require.Empty(t, rows)
	require.ErrorIs(t, err, store.ErrCorrupt)
}

// Badger silently drops its log from the first damaged record on. The anchor reveals it.
func TestLoad_TellsOfALostTail(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	for i := range 100 {
		require.NoError(t, s.Commit(t.Context(), puts(fmt.Sprintf("%03d", i),
			strings.Repeat("x", 100))))
	}
	anchored(t, dir, 100)
	left := copyDir(t, dir)
	logs, err := filepath.Glob(filepath.Join(left, "*.mem"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	raw, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	at := bytes.Index(raw, []byte("r050"))
	require.Positive(t, at)
	raw[at+30] ^= 4
	require.NoError(t, os.WriteFile(logs[0], raw, 0o600))

	s = mustOpen(t, left)
	rows, err := load(s)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "the log ends with commit 50, but 100 were acknowledged")
	require.Len(t, rows, 50)
	require.NoError(t, s.Commit(t.Context(), puts("050", "again")))
	require.NoError(t, s.Close())
	rows, err = load(mustOpen(t, left))
	require.NoError(t, err, "it is told once, and commits go on beyond the anchor")
	require.Len(t, rows, 51)
}

func TestLoad_TellsOfADamagedAnchor(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, disk.AnchorName), []byte("what is this"),
		0o600))
	s = mustOpen(t, dir)
	rows, err := load(s)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "the anchor cannot be read")
	require.Equal(t, map[string]string{"a": "1"}, rows)
	require.NoError(t, s.Close())
	s = mustOpen(t, dir)
	_, err = load(s)
	require.ErrorContains(t, err, "the anchor cannot be read", "until a commit follows")
	require.NoError(t, s.Commit(t.Context(), puts("a", "2")))
	require.NoError(t, s.Close())
	_, err = load(mustOpen(t, dir))
	require.NoError(t, err)
}

// A row has vanished from the tables, but was not deleted.
func TestLoad_TellsOfARowThatHasVanished(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	for i := range 10 {
		require.NoError(t, s.Commit(t.Context(), puts(fmt.Sprint(i), "one", fmt.Sprint(i), "two")))
	}
	b := &store.Batch{}
	b.Delete("1")
	b.Delete("none")
	require.NoError(t, s.Commit(t.Context(), b))
	_, err := load(s)
	require.NoError(t, err)
	require.NoError(t, s.engine.db.Update(func(txn *badger.Txn) error {
		return txn.Delete([]byte("r5"))
	}))
	rows, err := load(s)
	require.Len(t, rows, 8)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "rows are missing")
	rows, err = load(s)
	require.NoError(t, err, "it is told once")
	require.Len(t, rows, 8)
	require.NoError(t, s.Commit(t.Context(), puts("5", "again", "0", "three")))
	require.NoError(t, s.Close())
	rows, err = load(mustOpen(t, dir))
	require.NoError(t, err, "nor after opening again")
	require.Len(t, rows, 9)
}

// The anchor reaches the last commit even if no commit follows.
func TestAnchor_IsRaisedWhenCommitsPause(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	for range 5 {
		require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	}
	anchored(t, dir, 5)
}

// anchored waits until the anchor holds a number, which takes up to a second after the commit.
func anchored(t *testing.T, dir string, number uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, disk.AnchorName))
		return err == nil && number == max(binary.LittleEndian.Uint64(raw[4096:]),
			binary.LittleEndian.Uint64(raw[8192:])) // its two slots
	}, time.Minute, 10*time.Millisecond)
}

func TestCommit_RefusesWhileTheDiskIsNearlyFull(t *testing.T) {
	s := mustOpen(t, newDir(t))
	for _, step := range []struct {
		free int64
		ok   bool
	}{
		// until a quarter more is free
		{minReserve, true}, {minReserve - 128<<10, false}, {minReserve, false},
		{minReserve * 5 / 4, true}, {minReserve, true},
	} {
		// the rest is for the tables
		s.engine.reserve.Free = func(string) (int64, error) { return step.free + 64<<10, nil }
		err := s.Commit(t.Context(), puts("a", "1"))
		if step.ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, store.ErrFull)
			require.ErrorContains(t, err, fmt.Sprint(step.free+64<<10))
		}
	}
	s.engine.reserve.Free = func(string) (int64, error) { return 0, io.ErrUnexpectedEOF }
	require.ErrorIs(t, s.Commit(t.Context(), puts("a", "2")), store.ErrFailed)
	require.ErrorIs(t, s.Commit(t.Context(), puts("a", "2")), io.ErrUnexpectedEOF)
}

func TestCommit_FailsForGoodWhenBadgerDoes(t *testing.T) {
	dir := newDir(t)
	s := mustOpen(t, dir)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	require.NoError(t, s.engine.db.Close()) // behind its back
	for range 2 {
		require.ErrorIs(t, s.Commit(t.Context(), puts("b", "1")), store.ErrFailed)
	}
	_, err := load(s)
	require.ErrorIs(t, err, store.ErrFailed)
	_ = s.Close()
	rows, err := load(mustOpen(t, dir))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, rows)
}

func TestOpen_SaysWhatIsWrong(t *testing.T) {
	t.Run("config", func(t *testing.T) {
		_, err := open(newDir(t), Config{Reserve: 1})
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "Reserve (1) must be from 335544320")
	})
	t.Run("writable by others", func(t *testing.T) {
		dir := newDir(t)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.Chmod(dir, 0o770))
		_, err := open(dir, config)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "chmod go-w it")
	})
	t.Run("a file", func(t *testing.T) {
		file := newDir(t)
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, err := open(file, config)
		require.Error(t, err)
	})
	t.Run("manifest", func(t *testing.T) {
		dir := newDir(t)
		require.NoError(t, mustOpen(t, dir).Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "MANIFEST"), []byte("what is this"),
			0o600))
		_, err := open(dir, config)
		require.ErrorIs(t, err, store.ErrCorrupt)
	})
}

func TestKey_EncryptsWhatIsWritten(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 32)
	encrypted := Config{Key: key, Logger: config.Logger}
	dir := newDir(t)
	s, err := open(dir, encrypted)
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, s.Commit(t.Context(), puts(fmt.Sprint("very secret key ", i),
			"very secret value")))
	}
	readable := func() (found bool) {
		for _, f := range list(t, dir) {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			found = found || bytes.Contains(raw, []byte("secret"))
		}
		return found
	}
	require.False(t, readable(), "in the log")
	require.NoError(t, s.Close())
	require.False(t, readable(), "in the tables")

	for _, wrong := range []Config{{Key: bytes.Repeat([]byte("x"), 32)}, {Key: key[:16]}, {}} {
		wrong.Logger = config.Logger
		_, err := open(dir, wrong)
		require.ErrorIs(t, err, store.ErrWrongKey)
		require.ErrorContains(t, err, "open it with the key it was made with")
	}
	s, err = open(dir, encrypted)
	require.NoError(t, err)
	rows, err := load(s)
	require.NoError(t, err)
	require.Len(t, rows, 50)
	require.NoError(t, s.Close())

	plain := newDir(t)
	require.NoError(t, mustOpen(t, plain).Close())
	_, err = open(plain, encrypted)
	require.ErrorIs(t, err, store.ErrWrongKey)
	require.ErrorContains(t, err, "open it without Config.Key")
	_, err = open(plain, Config{Key: key[:7]})
	require.ErrorIs(t, err, store.ErrInvalid)
}

// One flipped bit in the length of a key in the registry made Badger allocate gigabytes.
func TestKey_ADamagedLengthIsNotAllocated(t *testing.T) {
	encrypted := Config{Key: []byte("sixteen bytes ok"), Logger: config.Logger}
	dir := newDir(t)
	s, err := open(dir, encrypted)
	require.NoError(t, err)
	require.NoError(t, s.Commit(t.Context(), puts("key", "value")))
	require.NoError(t, s.Close())
	registry := filepath.Join(dir, badger.KeyRegistryFileName)
	raw, err := os.ReadFile(filepath.Clean(registry))
	require.NoError(t, err)
	require.Greater(t, len(raw), 28, "it has a key")
	torn := append(slices.Clone(raw), 0x7f) // the first byte of the length of a second key
	raw[28] ^= 0x20
	for what, raw := range map[string][]byte{"flipped": raw, "torn": torn} {
		require.NoError(t, os.WriteFile(registry, raw, 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = open(dir, encrypted)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, store.ErrCorrupt, what)
		require.ErrorContains(t, err, "KEYREGISTRY: a key of", what)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), what)
	}
}

func TestKey_StoreConforms(t *testing.T) {
	t.Parallel() // it waits for the disk
	storetest.Run(t, func(t *testing.T) storetest.Disk {
		dir := newDir(t)
		return storetest.Disk{
			Open: func() (store.Store, error) {
				s, err := open(dir, Config{Key: []byte("sixteen bytes ok"), Logger: config.Logger})
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { _ = s.Close() })
				return s, nil
			},
			Crash: func() { dir = copyDir(t, dir) },
		}
	})
}

func TestOpen_MakesTheDirectoryForThisUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	mustOpen(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// BenchmarkCommit measures batches of one row of 1 kB, with one writer and with many, which share
// syncs.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := open(filepath.Join(b.TempDir(), "rows"), config)
			require.NoError(b, err)
			value := string(bytes.Repeat([]byte("v"), 1000))
			b.SetParallelism(writers)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					if err := s.Commit(context.Background(),
						puts(fmt.Sprint(n%1000), value)); err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			require.NoError(b, s.Close())
		})
	}
}

// noTables makes Badger unable to create tables until the result is called.
func noTables(t *testing.T, dir string) (repair func()) {
	t.Helper()
	var taken []string
	for i := 1; i < 1000; i++ {
		name := filepath.Join(dir, fmt.Sprintf("%06d.sst", i))
		require.NoError(t, os.Mkdir(name, 0o700))
		taken = append(taken, name)
	}
	return func() {
		for _, name := range taken {
			require.NoError(t, os.Remove(name))
		}
	}
}

// Badger repeats without end what it cannot write. A process that stops must end in spite of that.
func TestClose_EndsWhenNoTableCanBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sync") // the error then looks like that of a sync
	s, err := open(dir, config)
	require.NoError(t, err)
	require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
	repair, closed := noTables(t, dir), make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		require.ErrorContains(t, err, "no table can be written")
	case <-time.After(time.Minute):
		t.Fatal("Close does not return")
	}
	repair()
	rows, err := load(mustOpen(t, dir))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, rows)
}

// Commits are refused as on a full disk, and go on when tables can be written again. The log has a
// line for each series of failures.
func TestCommit_IsRefusedWhileNoTableCanBeWritten(t *testing.T) {
	dir := newDir(t)
	var log bytes.Buffer
	noisy := config
	noisy.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := open(dir, noisy)
	require.NoError(t, err)
	// Badger blocks what it has no room for.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	repair, want := noTables(t, dir), map[string]string{}
	value := strings.Repeat("v", store.MaxValue)
	for n := 0; err == nil; n++ {
		require.Less(t, n, 200)
		key := fmt.Sprintf("%03d", n%20)
		if err = s.Commit(ctx, puts(key, value)); err == nil {
			want[key] = value
		}
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorContains(t, err, "no table can be written")
	repair()
	for err != nil {
		require.ErrorIs(t, err, store.ErrFull)
		time.Sleep(100 * time.Millisecond)
		err = s.Commit(ctx, puts("late", "1"))
	}
	want["late"] = "1"
	require.NoError(t, s.Close())
	require.Equal(t, 1, strings.Count(log.String(), "error flushing memtable"))
	rows, err := load(mustOpen(t, dir))
	require.NoError(t, err)
	require.Equal(t, want, rows)
}
