package disktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/store"
)

// A small file system is filled by the store itself and, where the store can cope with that, by
// others. Nothing acknowledged is lost, everything can be read, and commits succeed again when
// there is room.
func TestFull_GoesOnWhenThereIsRoom(t *testing.T) {
	if !mayMount(t) {
		t.Skip("LEFT OUT: a full file system; ErrFull itself is tested by the packages of the stores")
	}
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		at := mount(t, "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=700", k.room), "none")
		dir := filepath.Join(at, "rows")
		s := mustOpen(t, k, dir)
		want, n := map[string]string{}, 0
		put := func() error {
			b := &store.Batch{}
			for range 1 + random.IntN(3) {
				n++
				key, value := fmt.Sprintf("row %05d", n),
					strings.Repeat("v", 1+random.IntN(300_000))
				b.Put(key, []byte(value))
			}
			err := s.Commit(context.Background(), b)
			for o := range b.Ops() {
				if err == nil {
					want[o.Key] = string(o.Value)
				}
			}
			return err
		}
		err := error(nil)
		for err == nil {
			require.Less(t, n, 20_000)
			err = put()
		}
		require.ErrorIs(t, err, store.ErrFull)
		require.Greater(t, n, 10)
		require.Equal(t, want, read(t, s).whole(t))
		others := filepath.Join(at, "others")
		if k.name == "bbolt" {
			for size := 16 << 20; size > 0; size /= 2 { // to the last byte
				f, err := os.OpenFile(others, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				require.NoError(t, err)
				_, err = f.Write(make([]byte, size))
				require.NoError(t, f.Close())
				require.ErrorIs(t, put(), store.ErrFull, err)
			}
			require.Equal(t, want, read(t, s).whole(t))
			require.NoError(t, os.Remove(others))
		}
		require.NoError(t, s.Close())
		run(t, "mount", "-o", fmt.Sprintf("remount,size=%dm", 2*k.room), at)
		s = mustOpen(t, k, dir)
		require.Equal(t, want, read(t, s).whole(t))
		require.NoError(t, put())
		require.Equal(t, want, read(t, s).whole(t))
	})
}

// A read-only file system is reported as such.
func TestOpen_SaysThatAFileSystemIsReadOnly(t *testing.T) {
	if !mayMount(t) {
		t.Skip("LEFT OUT: a read-only file system")
	}
	each(t, func(t *testing.T, k kind, _ *rand.Rand) {
		at := mount(t, "-t", "tmpfs", "-o", "size=600m,mode=700", "none")
		dir := filepath.Join(at, "rows")
		s := mustOpen(t, k, dir)
		require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
		require.NoError(t, s.Close())
		run(t, "mount", "-o", "remount,ro", at)
		_, err := k.open(dir)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "mount its file system for writing")
		run(t, "mount", "-o", "remount,rw", at)
		require.Equal(t, map[string]string{"a": "1"}, read(t, mustOpen(t, k, dir)).whole(t))
	})
}

// A directory that is removed under a store makes it fail, and its Close returns.
func TestRemoved_FailsAndCloses(t *testing.T) {
	each(t, func(t *testing.T, k kind, _ *rand.Rand) {
		dir := newDir(t)
		s := mustOpen(t, k, dir)
		require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
		require.NoError(t, os.RemoveAll(dir))
		require.ErrorIs(t, s.Commit(t.Context(), puts("b", "1")), store.ErrFailed)
		_ = s.Close() // it may say that files are missing
	})
}

// The directory of one store is foreign to the other, and stays unchanged.
func TestOpen_RefusesTheDirectoryOfAnotherStore(t *testing.T) {
	each(t, func(t *testing.T, k kind, _ *rand.Rand) {
		dir := newDir(t)
		s := mustOpen(t, k, dir)
		require.NoError(t, s.Commit(t.Context(), puts("a", "1")))
		require.NoError(t, s.Close())
		before := names(t, dir)
		for _, other := range kinds() {
			if other.name == k.name {
				continue
			}
			_, err := other.open(dir)
			require.True(t, errors.Is(err, store.ErrForeign) || errors.Is(err, store.ErrWrongKey),
				err)
			require.Equal(t, before, names(t, dir))
		}
		require.Equal(t, map[string]string{"a": "1"}, read(t, mustOpen(t, k, dir)).whole(t))
	})
}
