package disk

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/distributeddata/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// empty is an engine without rows that accepts none.
type empty struct{}

func (empty) Room(int) error              { return nil }
func (empty) Update(func(Tx) error) error { return errors.ErrUnsupported }
func (empty) View() (Snapshot, error)     { return empty{}, nil }
func (empty) Get([]byte) ([]byte, error)  { return nil, nil }
func (empty) Rows() Cursor                { return cursor{} }
func (empty) Close()                      {}

type cursor struct{}

func (cursor) Next() (key, sealed []byte, err error) { return nil, nil, io.EOF }
func (cursor) Close()                                {}

type engine struct{ empty }

func (engine) Close() error { return nil }

func openEmpty(dir string) (*Store, error) { return openLogged(dir, slog.DiscardHandler) }

func openLogged(dir string, log slog.Handler) (*Store, error) {
	kind := Kind{Name: "none", Ours: func(name string) bool { return name == "rows" }}
	return Open(kind, dir, slog.New(log), func(*Store) (Engine, error) {
		return engine{}, nil
	})
}

// rewrite overwrites a part of the anchor.
func rewrite(t *testing.T, dir string, at int64, with []byte) {
	f, err := os.OpenFile(filepath.Join(dir, AnchorName), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(with, at)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestOpen_SaysWhatIsWrongAndTouchesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		is   error
		says string
	}{
		"foreign": {func(t *testing.T, dir string) {
			for _, f := range []string{"go.mod", "main.go", "a", "b", "rows"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			}
		}, store.ErrForeign, "it holds files of something else (a, b, go.mod, 1 more): choose another directory"},
		"without an anchor": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "rows"), nil, 0o600))
		}, store.ErrCorrupt, "it has no file ANCHOR, but rows: bring that file back from a copy"},
		"another store": {func(t *testing.T, dir string) {
			a, err := openAnchor(dir, "other", false)
			require.NoError(t, err)
			require.NoError(t, a.file.Close())
		}, store.ErrForeign, `it says "concord rows, other, format 1", and this is the store none: open it with that store`},
		"newer": {func(t *testing.T, dir string) {
			a, err := openAnchor(dir, "none, format 2\n", false)
			require.NoError(t, err)
			require.NoError(t, a.file.Close())
		}, store.ErrForeign, `it says "concord rows, none, format 2", and this version reads format 1: take the version that wrote it`},
		"locked": {func(t *testing.T, dir string) {
			s, err := openEmpty(dir)
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
		}, store.ErrLocked, "stop the process that has it open"},
		"writable by others": {func(t *testing.T, dir string) {
			require.NoError(t, os.Chmod(dir, 0o770))
		}, store.ErrInvalid, "others may write to it (mode 770): chmod go-w it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			c.make(t, dir)
			before := contents(t, dir)
			_, err := openEmpty(dir)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "directory "+dir)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, contents(t, dir))
		})
	}
}

// A user without write permission, and a read-only file system. The latter needs a mount: see
// disktest.
func TestOpen_SaysThatTheDirectoryMayNotBeWritten(t *testing.T) {
	for _, c := range []struct {
		cause error
		says  string
	}{
		{os.ErrPermission, "its owner"},
		{syscall.EROFS, "mount its file system for writing"},
		{syscall.ENOSPC, "make room first"},
	} {
		err := explain("/d", &os.PathError{Op: "open", Path: AnchorName, Err: c.cause})
		require.ErrorIs(t, err, c.cause)
		require.ErrorContains(t, err, c.says)
		require.True(t, errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrFull), err)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		all[f.Name()] = string(raw)
	}
	return all
}

func TestOpen_MakesTheDirectoryForThisUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := openEmpty(dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// A directory that is gone is not reported as one that others may read.
func TestClose_OfARemovedDirectoryLogsNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rows")
	var log strings.Builder
	s, err := openLogged(dir, slog.NewTextHandler(&log, nil))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	_ = s.Close()
	require.Empty(t, log.String())
}

// A crash may leave one damaged slot. Any further damage is reported until the next commit.
func TestAnchor_SurvivesATornSlot(t *testing.T) {
	dir := t.TempDir()
	a, err := openAnchor(dir, "none", false)
	require.NoError(t, err)
	for i := range uint64(5) {
		require.NoError(t, a.raise(i, time.Unix(int64(10*i), 0)))
	}
	require.NoError(t, a.file.Close())
	for _, c := range []struct {
		at      int64
		number  uint64
		damaged string
	}{
		{slotSpace, 4, ""}, {2 * slotSpace, 0, "both of its slots"},
	} {
		rewrite(t, dir, c.at+3, []byte("torn"))
		a, err = openAnchor(dir, "none", false)
		require.NoError(t, err)
		require.Equal(t, c.damaged, a.damaged)
		require.Equal(t, c.number, a.number)
		require.NoError(t, a.file.Close())
	}
	a, err = openAnchor(dir, "none", false)
	require.NoError(t, err)
	require.Equal(t, "both of its slots", a.damaged, "nothing was committed since")
	require.NoError(t, a.close(a.number, true))
	a, err = openAnchor(dir, "none", false)
	require.NoError(t, err)
	require.Equal(t, "both of its slots", a.damaged, "also if it is closed in order")
	require.NoError(t, a.close(7, true))
	rewrite(t, dir, 20, []byte("?"))
	a, err = openAnchor(dir, "none", false)
	require.NoError(t, err)
	require.Equal(t, "its header", a.damaged)
	require.Equal(t, uint64(7), a.number, "the number is kept")
	require.NoError(t, a.file.Close())
}

func TestGuarded_MakesErrorsOfPanics(t *testing.T) {
	err := Guarded(func() error { panic("so") })
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.True(t, strings.Contains(err.Error(), "so"))
	require.ErrorIs(t, Guarded(func() error { return io.EOF }), io.EOF)
}
