package disktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
)

var (
	seed    = flag.Uint64("seed", 1, "of all that is random")
	cuts    = flag.Int("cuts", 1, "power cuts of each store")
	damages = flag.Int("damages", 10, "bit flips and truncations of each store")
	kills   = flag.Int("kills", 6, "processes of each store that are killed")
	mounts  = flag.Bool("mounts", false,
		"fail where no file system can be mounted, which takes root on Linux")
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		fmt.Fprintln(os.Stderr, writeForEver(os.Getenv(childVariable), os.Getenv(dirVariable)))
		os.Exit(1)
	}
	// Badger leaves these behind when it rejects a directory, and Proto.Actor the last one for a
	// second.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(
		"github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
		goleak.IgnoreTopFunction(
			"github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"),
		goleak.IgnoreAnyFunction(
			"github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

var silent = slog.New(slog.DiscardHandler)

// key encrypts the directories of the kind "badger-encrypted".
var key = []byte("golden key, of thirty-two bytes!")

// kind is a store on disks.
type kind struct {
	name string
	open func(dir string) (store.Store, error)
	room int // MiB, of a file system on which it can commit some megabytes
}

func kinds() []kind {
	return []kind{
		{"badger", func(dir string) (store.Store, error) {
			return result(badger.Open(dir, badger.Config{Logger: silent}))
		}, 400},
		{"badger-encrypted", func(dir string) (store.Store, error) {
			return result(badger.Open(dir, badger.Config{Key: key, Logger: silent}))
		}, 400},
		{"bbolt", func(dir string) (store.Store, error) {
			return result(bbolt.Open(dir, bbolt.Config{Logger: silent}))
		}, 32},
	}
}

// result converts a nil pointer to a nil interface.
func result[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// each runs a test for every kind of store, with separate randomness.
func each(t *testing.T, test func(t *testing.T, k kind, random *rand.Rand)) {
	t.Helper()
	for i, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { test(t, k, rand.New(rand.NewPCG(*seed, uint64(i)))) })
	}
}

// contents are the rows that a store yields, and its error reports.
type contents struct {
	rows    map[string]string
	corrupt []string // keys of corrupt rows
	missing []error  // reports without a key
}

// read loads everything. An error other than corruption fails the test.
func read(t *testing.T, s store.Store) contents {
	t.Helper()
	c := contents{rows: map[string]string{}}
	for r, err := range s.Load(context.Background()) {
		switch {
		case err == nil:
			c.rows[r.Key] = string(r.Value)
		case !errors.Is(err, store.ErrCorrupt):
			require.NoError(t, err)
		case r.Key != "":
			c.corrupt = append(c.corrupt, r.Key)
		default:
			c.missing = append(c.missing, err)
		}
	}
	return c
}

// whole requires that a store reports nothing missing.
func (c contents) whole(t *testing.T) map[string]string {
	t.Helper()
	require.Empty(t, c.corrupt)
	require.Empty(t, c.missing)
	return c.rows
}

// anchor is the name of the file that both stores have in each directory.
const anchor = "ANCHOR"

// copyDir copies the files of a directory in an order in which they could have reached a disk: the
// anchor first, which must not be newer than the data that it describes.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "rows")
	require.NoError(t, os.MkdirAll(to, 0o700))
	names := names(t, from)
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, anchor), strings.TrimPrefix(b, anchor))
	})
	for _, name := range names {
		require.NoError(t, copyFile(filepath.Join(from, name), filepath.Join(to, name)))
	}
	return to
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, f := range files {
		all = append(all, f.Name())
	}
	return all
}

// copyFile copies a file, and leaves holes where there are zeros, since logs are much larger than
// their content. A file that has been deleted meanwhile is no error.
func copyFile(from, to string) error {
	in, err := os.Open(filepath.Clean(from))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(copyParts(in, out), out.Truncate(info.Size()), out.Close())
}

const (
	part  = 256 << 10
	quiet = 8 // parts of zeros after which a log counts as ended
)

func copyParts(in io.Reader, out io.WriterAt) error {
	buffer := make([]byte, part)
	zeros := 0
	for at := int64(0); zeros < quiet; at += part {
		n, err := io.ReadFull(in, buffer)
		if zero(buffer[:n]) {
			zeros++
		} else if _, err := out.WriteAt(buffer[:n], at); err != nil {
			return err
		} else {
			zeros = 0
		}
		if err != nil {
			return nil //nolint:nilerr // the end
		}
	}
	return nil
}

func zero(b []byte) bool {
	return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

func puts(pairs ...string) *store.Batch {
	b := &store.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Put(pairs[i], []byte(pairs[i+1]))
	}
	return b
}

func mustOpen(t *testing.T, k kind, dir string) store.Store {
	t.Helper()
	s, err := k.open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "rows") }

// fill commits some hundred rows in batches, some of them several times, and deletes some. It
// returns the resulting rows.
func fill(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	want := map[string]string{}
	for round := range 4 {
		b := &store.Batch{}
		for i := range 200 {
			k := fmt.Sprintf("row %03d", i)
			if (i+round)%7 == 0 {
				b.Delete(k)
				delete(want, k)
				continue
			}
			v := strings.Repeat(fmt.Sprintf("%d of %d, ", round, i), i%40)
			b.Put(k, []byte(v))
			want[k] = v
		}
		require.NoError(t, s.Commit(context.Background(), b))
	}
	return want
}
