package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/inspect"
	"github.com/concord-go/concord/distributeddata/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows returns rows of two entries and two generations.
func rows() *store.Batch {
	b := &store.Batch{}
	b.Put("H", []byte("header"))
	b.Put("M", []byte("members"))
	b.Put("d\x01cart\xffaold", []byte("set aside"))
	b.Put("d\x02cart\xffapath1", []byte("milk"))
	b.Put("d\x02cart\xffapath2", []byte("bread"))
	b.Put("d\x02views\xffapath", []byte("7"))
	b.Put("d\x02views\xffkpath", []byte("reset"))
	b.Put("v\x02replica1", []byte("12"))
	b.Put("what", []byte("?"))
	return b
}

func fill(t *testing.T, s store.Store, err error) {
	t.Helper()
	require.NoError(t, err)
	require.NoError(t, s.Commit(context.Background(), rows()))
	require.NoError(t, s.Close())
}

func TestVerify_TellsWhatThereIs(t *testing.T) {
	key := []byte("sixteen bytes ok")
	for name, open := range map[string]func(dir string) (store.Store, error){
		"badger": func(dir string) (store.Store, error) {
			return badger.Open(dir, badger.Config{Key: key})
		},
		"bbolt": func(dir string) (store.Store, error) { return bbolt.Open(dir, bbolt.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "rows")
			s, err := open(dir)
			require.NoError(t, err)
			_, err = inspect.Open(dir, key)
			require.ErrorIs(t, err, store.ErrLocked)
			fill(t, s, nil)
			s, err = inspect.Open(dir, key)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			r, err := inspect.Verify(t.Context(), s)
			require.NoError(t, err)
			require.True(t, r.Sound())
			require.Equal(t, []inspect.Entry{
				{Key: "cart", Atoms: 2, Bytes: 2*int64(len("d\x02cart\xffapath1")) + 9},
				{Key: "views", Atoms: 1, Marks: 1, Bytes: 2*int64(len("d\x02views\xffapath")) + 6},
			}, r.Entries)
			require.Equal(t, []int{9, 3, 1, 1}, []int{r.Rows, r.Other, r.Old, r.Unknown})
		})
	}
}

func TestVerify_TellsWhatIsWrong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rows")
	s, err := bbolt.Open(dir, bbolt.Config{})
	fill(t, s, err)
	file := filepath.Join(dir, "rows.db")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(raw, []byte("milk"), []byte("silk")),
		0o600))
	opened, err := inspect.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	r, err := inspect.Verify(t.Context(), opened)
	require.NoError(t, err)
	require.False(t, r.Sound())
	require.Equal(t, "cart", r.Corrupt[0].Entry)
	require.Equal(t, 1, r.Entries[0].Corrupt)
	require.Equal(t, 1, r.Entries[0].Atoms)

	var out strings.Builder
	require.NoError(t, inspect.Export(t.Context(), opened, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 10)
	var line struct {
		Kind, Entry, Error string
		Key, Value         []byte
	}
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &line))
	require.Equal(t, "atom", line.Kind)
	require.Contains(t, line.Error, "checksum does not match")
	require.NoError(t, json.Unmarshal([]byte(lines[4]), &line))
	require.Equal(t, "bread", string(line.Value))
	require.Equal(t, "d\x02cart\xffapath2", string(line.Key))
	into := filepath.Join(t.TempDir(), "into")
	_, err = inspect.Import(t.Context(), strings.NewReader(out.String()), into, "bbolt", nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "the exported directory was damaged")
	require.NoDirExists(t, into)
}

func export(t *testing.T, dir string, key []byte) string {
	t.Helper()
	s, err := inspect.Open(dir, key)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var out strings.Builder
	require.NoError(t, inspect.Export(t.Context(), s, &out))
	return out.String()
}

// An export of either store comes back in either store, and nothing else does.
func TestImport_BringsAnExportBack(t *testing.T) {
	key := []byte("sixteen bytes ok")
	from := filepath.Join(t.TempDir(), "from")
	s, err := badger.Open(from, badger.Config{Key: key})
	fill(t, s, err)
	text := export(t, from, key)
	for _, into := range []struct {
		kind string
		key  []byte
	}{{"badger", nil}, {"badger", key}, {"bbolt", nil}} {
		dir := filepath.Join(t.TempDir(), "into")
		n, err := inspect.Import(t.Context(), strings.NewReader(text), dir, into.kind, into.key)
		require.NoError(t, err)
		require.Equal(t, 9, n)
		require.Equal(t, text, export(t, dir, into.key))
		_, err = inspect.Import(t.Context(), strings.NewReader(text), dir, into.kind, into.key)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "is not empty")
		require.Equal(t, text, export(t, dir, into.key), "nothing was changed")
	}
	lines := strings.SplitAfter(text, "\n")
	for what, c := range map[string]struct{ text, want string }{
		"nothing":      {"", "incomplete"},
		"without end":  {strings.Join(lines[:9], ""), "incomplete"},
		"cut":          {text[:len(text)/2], "incomplete"},
		"a row less":   {strings.Join(lines[1:], ""), "8 rows do not match the 9"},
		"altered":      {strings.Replace(text, "bWlsaw", "c2lsaw", 1), "was altered"},
		"twice":        {text + text, "after the end"},
		"out of order": {lines[1] + text, "not above"},
		"no JSON":      {"milk", "line 1"},
		"no key":       {"{}", "no key"},
	} {
		dir := filepath.Join(t.TempDir(), "into")
		_, err := inspect.Import(t.Context(), strings.NewReader(c.text), dir, "bbolt", nil)
		require.ErrorIs(t, err, store.ErrInvalid, what)
		require.ErrorContains(t, err, c.want, what)
		require.NoDirExists(t, dir, what)
	}
	for _, kind := range []string{"", "stone"} {
		_, err := inspect.Import(t.Context(), strings.NewReader(text), t.TempDir(), kind, nil)
		require.ErrorContains(t, err, "must be badger or bbolt")
	}
	_, err = inspect.Import(t.Context(), strings.NewReader(text), t.TempDir(), "bbolt", key)
	require.ErrorContains(t, err, "does not encrypt")
}

func TestOpen_RefusesWhatIsOfNoStore(t *testing.T) {
	dir := t.TempDir()
	_, err := inspect.Open(dir, nil)
	require.ErrorIs(t, err, store.ErrForeign)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ANCHOR"),
		[]byte("concord rows, stone, format 1\n"), 0o600))
	_, err = inspect.Open(dir, nil)
	require.ErrorIs(t, err, store.ErrForeign)
	require.ErrorContains(t, err, `belongs to the store "stone"`)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestNil_ArgumentsAreInvalid(t *testing.T) {
	s, err := bbolt.Open(t.TempDir(), bbolt.Config{})
	require.NoError(t, err)
	defer s.Close()
	_, err = inspect.Verify(t.Context(), nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorIs(t, inspect.Export(t.Context(), nil, new(bytes.Buffer)), store.ErrInvalid)
	require.ErrorIs(t, inspect.Export(t.Context(), s, nil), store.ErrInvalid)
	require.ErrorIs(t, s.Commit(t.Context(), nil), store.ErrInvalid)
}
