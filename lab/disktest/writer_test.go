package disktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/child"
)

const (
	childVariable = "CONCORD_DISKTEST_KIND" // the kind of store in which a child must write
	dirVariable   = "CONCORD_DISKTEST_DIR"
)

// history is a sequence of batches identified by their numbers: the rows reveal how many were
// committed.
type history struct {
	number int
	rows   map[string]string
}

func newHistory() *history { return &history{rows: map[string]string{}} }

// next returns the batch after those so far.
func (h *history) next() *store.Batch {
	h.number++
	n, b := h.number, &store.Batch{}
	put := func(key, value string) {
		b.Put(key, []byte(value))
		h.rows[key] = value
	}
	put("number", fmt.Sprint(n))
	put(fmt.Sprintf("row %02d", n%60), strings.Repeat(fmt.Sprint(n, " "), n*13%300))
	gone := fmt.Sprintf("row %02d", n*7%60)
	if n%3 == 0 {
		b.Delete(gone)
		delete(h.rows, gone)
	}
	put("number again", fmt.Sprint(n))
	return b
}

// until advances to the number that rows contain, and returns an error if the rows are not those of
// that number.
func (h *history) until(rows map[string]string) error {
	n := 0
	_, _ = fmt.Sscan(rows["number"], &n)
	for h.number < n {
		h.next()
	}
	if h.number != n {
		return fmt.Errorf("number %d is there, which was before %d", n, h.number)
	}
	for _, key := range slices.Sorted(maps.Keys(h.rows)) {
		if h.rows[key] != rows[key] {
			return fmt.Errorf("after batch %d row %q is %q, want %q", n, key, rows[key],
				h.rows[key])
		}
	}
	if len(rows) != len(h.rows) {
		return fmt.Errorf("after batch %d there are %d rows, want %d", n, len(rows), len(h.rows))
	}
	return nil
}

// writeForEver continues the history in a directory. It prints the number that it finds, and that
// of each batch once it is acknowledged. A reader checks the rows meanwhile.
func writeForEver(name, dir string) error {
	all := kinds()
	k := all[slices.IndexFunc(all, func(k kind) bool { return k.name == name })]
	s, err := k.open(dir)
	if err != nil {
		return err
	}
	h := newHistory()
	rows, err := loadAll(s)
	if err == nil {
		err = h.until(rows)
	}
	if err != nil {
		return err
	}
	fmt.Println("has", h.number)
	broken := make(chan error, 1)
	go func() { broken <- readForEver(s) }()
	for {
		if err := s.Commit(context.Background(), h.next()); err != nil {
			return err
		}
		fmt.Println("ack", h.number)
		select {
		case err := <-broken:
			return err
		default:
		}
	}
}

// readForEver reads until the rows belong to no number.
func readForEver(s store.Store) error {
	for h := newHistory(); ; {
		rows, err := loadAll(s)
		if err == nil {
			err = h.until(rows)
		}
		if err != nil {
			return fmt.Errorf("reader: %w", err)
		}
	}
}

func loadAll(s store.Store) (map[string]string, error) {
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

// writer is a child process that writes, and what it has printed.
type writer struct {
	*child.Process
	found, told atomic.Int64
	heard       chan struct{} // buffered for one
}

// startWriter starts a child, and waits until it has printed the given number of acknowledgements.
func startWriter(t *testing.T, k kind, dir string, times int) *writer {
	t.Helper()
	w := &writer{heard: make(chan struct{}, 1)}
	w.found.Store(-1)
	w.Process = child.Start(t, []string{childVariable + "=" + k.name, dirVariable + "=" + dir},
		func(line []byte) {
			var n int64
			if _, err := fmt.Sscanf(string(line), "has %d", &n); err == nil {
				w.told.Store(n)
				w.found.Store(n)
			} else if _, err := fmt.Sscanf(string(line), "ack %d", &n); err == nil {
				w.told.Store(n)
			}
			select {
			case w.heard <- struct{}{}:
			default:
			}
		})
	for w.found.Load() < 0 {
		w.listen(t)
	}
	w.wait(t, times)
	return w
}

// wait returns when that many more batches are acknowledged.
func (w *writer) wait(t *testing.T, times int) {
	t.Helper()
	for until := w.told.Load() + int64(times); w.told.Load() < until; {
		w.listen(t)
	}
}

func (w *writer) listen(t *testing.T) {
	t.Helper()
	select {
	case <-w.heard:
	case <-w.Gone():
		require.Fail(t, "the writer has ended", w.Stderr())
	}
}

// holds requires that a directory holds the history up to an acknowledged number, plus at most one
// batch, and returns its number.
func holds(t *testing.T, k kind, dir string, told int64) {
	t.Helper()
	s, err := k.open(dir)
	require.NoError(t, err)
	h := newHistory()
	require.NoError(t, h.until(read(t, s).whole(t)))
	require.NoError(t, s.Close())
	require.GreaterOrEqual(t, h.number, int(told), "batch %d was acknowledged, and is not there",
		told)
}
