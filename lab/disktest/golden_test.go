package disktest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The directories in testdata are kept forever: each later version opens them, and finds in them
// what this test says. A new format adds new ones: go test -run Golden -golden writes the missing
// ones.
var writeGolden = flag.Bool("golden", false, "write the golden directories that are missing")

// golden returns the content of all directories of format 1.
func golden() map[string]string {
	rows := map[string]string{"empty": "", "\x00": "zero", "\xff\xfe": "high", "é": "text",
		"large": strings.Repeat("0123456789", 500)}
	for i := range 100 {
		rows[fmt.Sprintf("row %03d", i)] = fmt.Sprintf("value %d of the second time", i)
	}
	delete(rows, "row 017")
	return rows
}

func TestGolden_DirectoriesOfEveryFormatAreRead(t *testing.T) {
	for _, k := range kinds() {
		for _, state := range []string{"closed", "killed"} { // the second contains a log
			name := filepath.Join("testdata", fmt.Sprintf("format-1-%s-%s.tar.gz", k.name, state))
			t.Run(filepath.Base(name), func(t *testing.T) {
				if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) && *writeGolden {
					makeGolden(t, k, state, name)
				}
				dir := newDir(t)
				unpack(t, name, dir)
				s := mustOpen(t, k, dir)
				require.Equal(t, golden(), read(t, s).whole(t))
				require.NoError(t, s.Commit(t.Context(), puts("new", "row")))
				require.NoError(t, s.Close())
				want := golden()
				want["new"] = "row"
				require.Equal(t, want, read(t, mustOpen(t, k, dir)).whole(t))
			})
		}
	}
}

// wholeSize holds the size of a packed file including the zeros at its end.
const wholeSize = "CONCORD.size"

func makeGolden(t *testing.T, k kind, state, name string) {
	t.Helper()
	dir := newDir(t)
	s := mustOpen(t, k, dir)
	for i := range 100 {
		require.NoError(t, s.Commit(t.Context(), puts(fmt.Sprintf("row %03d", i), "first")))
	}
	b := puts("gone", "soon")
	for key, value := range golden() {
		b.Put(key, []byte(value))
	}
	b.Delete("row 017")
	b.Delete("gone")
	require.NoError(t, s.Commit(t.Context(), b))
	if state == "killed" {
		dir = copyDir(t, dir)
	} else {
		require.NoError(t, s.Close())
	}
	pack(t, dir, name)
}

// pack writes a directory to a file in testdata.
func pack(t *testing.T, dir, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
	out, err := os.Create(filepath.Clean(name))
	require.NoError(t, err)
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	require.NoError(t, err)
	packed := tar.NewWriter(zipped)
	for _, file := range names(t, dir) {
		raw, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		used := bytes.TrimRight(raw, "\x00") // logs are mostly zeros
		h := &tar.Header{Name: file, Mode: 0o600, Size: int64(len(used)),
			PAXRecords: map[string]string{wholeSize: fmt.Sprint(len(raw))}}
		require.NoError(t, packed.WriteHeader(h))
		_, err = packed.Write(used)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(packed.Close(), zipped.Close(), out.Close()))
}

func unpack(t *testing.T, name, dir string) {
	t.Helper()
	require.NoError(t, os.Mkdir(dir, 0o700))
	in, err := os.Open(filepath.Clean(name))
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	zipped, err := gzip.NewReader(in)
	require.NoError(t, err)
	for packed := tar.NewReader(zipped); ; {
		h, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		out, err := os.OpenFile(filepath.Join(dir, filepath.Base(h.Name)),
			os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		size := int64(0)
		_, err = fmt.Sscan(h.PAXRecords[wholeSize], &size)
		require.NoError(t, err)
		_, err = io.Copy(out, packed)
		require.NoError(t, errors.Join(err, out.Truncate(size), out.Close()))
	}
}
