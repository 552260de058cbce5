package inspect_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/inspect"
	"github.com/concord-go/concord/distributeddata/store"
)

// stores opens each kind of store in a directory.
var stores = map[string]func(dir string) (store.Store, error){
	"badger": func(dir string) (store.Store, error) { return badger.Open(dir, badger.Config{}) },
	"bbolt":  func(dir string) (store.Store, error) { return bbolt.Open(dir, bbolt.Config{}) },
}

// killed returns a directory as a process leaves it that is killed after some commits, of which it
// acknowledged more.
func killed(t *testing.T, open func(dir string) (store.Store, error), commits, all int) string {
	t.Helper()
	running, dir := filepath.Join(t.TempDir(), "running"), filepath.Join(t.TempDir(), "killed")
	s, err := open(running)
	require.NoError(t, err)
	for i := range all {
		b := &store.Batch{}
		b.Put(fmt.Sprintf("d\x01cart\xffapath%02d", i), []byte("milk"))
		require.NoError(t, s.Commit(t.Context(), b))
		if i+1 == commits {
			require.NoError(t, os.CopyFS(dir, os.DirFS(running)))
		}
	}
	require.NoError(t, s.Close())
	anchor, err := os.ReadFile(filepath.Join(running, "ANCHOR"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ANCHOR"), anchor, 0o600))
	require.NoError(t, os.Chmod(dir, 0o700))
	return dir
}

// state returns the modes, times and contents of all files of a directory.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		text := fmt.Sprint(info.Mode(), info.ModTime(), info.Size())
		if !d.IsDir() {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			text += string(raw)
		}
		all[path] = text
		return nil
	}))
	return all
}

func TestOpen_WritesNothing(t *testing.T) {
	for name, open := range stores {
		for what, damage := range map[string]func(dir string) error{
			"killed":            func(string) error { return nil },
			"a damaged header":  func(dir string) error { return overwrite(dir, 50, []byte("?")) },
			"a damaged slot":    func(dir string) error { return overwrite(dir, older(t, dir), []byte("?")) },
			"two damaged slots": func(dir string) error { return overwrite(dir, 4096, make([]byte, 4200)) },
			"an emptied anchor": func(dir string) error {
				return os.Truncate(filepath.Join(dir, "ANCHOR"), 0)
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				dir := killed(t, open, 5, 13)
				require.NoError(t, damage(dir))
				before := state(t, dir)
				first := ""
				for i := range 3 {
					got := verdict(t, dir)
					if i == 0 {
						first = got
					}
					require.Equal(t, first, got, "reported every time")
					require.NotEqual(t, "sound", got)
					after := state(t, dir)
					require.Len(t, after, len(before))
					for path, want := range before {
						require.True(t, want == after[path], "%s changed", path)
					}
				}
			})
		}
	}
}

// older returns where the slot with the lower number is. Which one that is depends on how long the
// commits took. Damage to the other one may be a torn write, which hides what it acknowledged.
func older(t *testing.T, dir string) int64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "ANCHOR"))
	require.NoError(t, err)
	if binary.LittleEndian.Uint64(raw[4096:]) < binary.LittleEndian.Uint64(raw[8192:]) {
		return 4096
	}
	return 8192
}

func overwrite(dir string, at int64, with []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, "ANCHOR"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteAt(with, at)
	return err
}

// verdict returns "sound", or what is missing, or the error of opening.
func verdict(t *testing.T, dir string) string {
	t.Helper()
	s, err := inspect.Open(dir, nil)
	if err != nil {
		require.ErrorIs(t, err, store.ErrForeign)
		return err.Error()
	}
	defer func() { require.NoError(t, s.Close()) }()
	r, err := inspect.Verify(t.Context(), s)
	require.NoError(t, err)
	if r.Sound() {
		return "sound"
	}
	return fmt.Sprint(r.Missing)
}

// A directory of another mode is closed to others, and so are the files that databases create.
func TestStores_AreForThisUserOnly(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			dir := killed(t, open, 5, 13)
			require.NoError(t, os.Chmod(dir, 0o755))
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, f := range files {
				require.NoError(t, os.Chmod(filepath.Join(dir, f.Name()), 0o644))
			}
			private := func() {
				for path, text := range state(t, dir) {
					want := "-rw-------"
					if path == dir {
						want = "drwx------"
					}
					require.Equal(t, want, text[:10], path)
				}
			}
			s, err := open(dir)
			require.NoError(t, err)
			private()
			require.NoError(t, s.Close())
			private()
		})
	}
}
