package disktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/store"
)

// A flipped bit in any file, or a truncated file, is either detected or harmless: the store yields
// only rows that were written, and reports any missing ones. Then the store accepts the lost rows
// again.
// Seen in akka 28923, 29948.
func TestDamage_IsFoundOrHarmless(t *testing.T) {
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		closed := newDir(t)
		s := mustOpen(t, k, closed)
		want := fill(t, s)
		require.NoError(t, s.Close())
		s = mustOpen(t, k, closed) // once more, so that there are tables and a log
		for i := range 50 {
			key, value := fmt.Sprintf("late %02d", i), fmt.Sprint("value ", i)
			require.NoError(t, s.Commit(t.Context(), puts(key, value)))
			want[key] = value
		}
		time.Sleep(1100 * time.Millisecond) // the anchor is at most a second old
		killed := copyDir(t, closed)
		require.NoError(t, s.Close())

		found := map[string]int{}
		for i := range *damages {
			from := []string{closed, killed}[i%2]
			dir := copyDir(t, from)
			what := damage(t, dir, random)
			result := survive(t, k, dir, want, what)
			found[result]++
			t.Logf("%s: %s", what, result)
			require.NoError(t, os.RemoveAll(filepath.Dir(dir)))
		}
		t.Logf("of %d: %v", *damages, found)
	})
}

// damage flips a bit of some file, or truncates it, and says what it did.
func damage(t *testing.T, dir string, random *rand.Rand) string {
	t.Helper()
	all := names(t, dir)
	name := all[random.IntN(len(all))]
	path := filepath.Join(dir, name)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	used := len(raw) // mostly without the zeros at the end
	for used > 0 && raw[used-1] == 0 {
		used--
	}
	if used == 0 || random.IntN(10) == 0 {
		used = len(raw)
	}
	if used == 0 {
		return name + " is empty"
	}
	if random.IntN(4) == 0 {
		at := random.IntN(used)
		require.NoError(t, os.Truncate(path, int64(at)))
		return fmt.Sprintf("%s cut from %d to %d", name, len(raw), at)
	}
	at, bit := random.IntN(used), random.IntN(8)
	raw[at] ^= 1 << bit
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return fmt.Sprintf("%s of %d, byte %d, bit %d", name, len(raw), at, bit)
}

// survive opens a damaged directory, and returns the result.
func survive(t *testing.T, k kind, dir string, want map[string]string, what string) string {
	t.Helper()
	s, err := k.open(dir)
	if err != nil {
		require.True(t, errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrForeign) ||
			errors.Is(err, store.ErrWrongKey), "%s: the error is of no kind: %v", what, err)
		return "refused"
	}
	defer func() { require.NoError(t, s.Close(), what) }()
	got := read(t, s)
	for key, value := range got.rows {
		if value != want[key] || want[key] == "" && !has(want, key) {
			require.NotEmpty(t, got.missing,
				"%s: row %q is not what was written last, and nobody says so", what, key)
		}
	}
	told := len(got.corrupt) + len(got.missing)
	lost := &store.Batch{}
	for key, value := range want {
		if !has(got.rows, key) {
			require.NotZero(t, told, "%s: row %q is not there, and nobody says so", what, key)
		}
		lost.Put(key, []byte(value))
	}
	for key := range got.rows {
		if !has(want, key) {
			lost.Delete(key)
		}
	}
	for _, key := range got.corrupt {
		if !has(want, key) {
			lost.Delete(key)
		}
	}
	require.NoError(t, s.Commit(context.Background(), lost), what)
	require.Equal(t, want, read(t, s).rows, "%s: after all was written again", what)
	if told == 0 {
		return "harmless"
	}
	return "found"
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
