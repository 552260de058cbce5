package inspect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/concord-go/concord/distributeddata/store"
)

// end is the kind of the last line of an export.
const end = "end"

// importBatch is the size in bytes from which rows are committed.
const importBatch = 1 << 20

// sum is the count and the checksum of rows.
type sum struct {
	rows int
	hash hash.Hash
}

func newSum() sum { return sum{hash: sha256.New()} }

func (s *sum) add(r store.Row) {
	s.rows++
	for _, part := range [][]byte{[]byte(r.Key), r.Value} {
		s.hash.Write(binary.AppendUvarint(nil, uint64(len(part))))
		s.hash.Write(part)
	}
}

// Import writes the rows of an export, from its begin, into a new directory of a kind of store,
// "badger" or "bbolt", and reads them back. It returns the number of rows. The key is
// badger.Config.Key, or nil if the directory is not encrypted. An export may come from a directory
// of either kind.
//
// The directory may exist, but must hold no rows. If it does, or if the export is incomplete,
// altered, or that of a damaged directory, the error wraps store.ErrInvalid, and nothing was
// written. After any other error delete the directory, which may hold a part of the rows.
func Import(ctx context.Context, from io.ReadSeeker, dir, kind string, key []byte) (rows int,
	err error) {
	open, known := openers[kind]
	switch {
	case !known:
		return 0, fmt.Errorf("%w: kind of store %q, must be badger or bbolt", store.ErrInvalid,
			kind)
	case kind == "bbolt" && len(key) > 0:
		return 0, fmt.Errorf("%w: bbolt does not encrypt, but there is a key", store.ErrInvalid)
	case from == nil:
		return 0, fmt.Errorf("%w: the export is nil", store.ErrInvalid)
	}
	want := newSum()
	for r, err := range imported(from) { // all of it is checked before anything is written
		if err != nil {
			return 0, err
		}
		want.add(r)
	}
	s, err := open(dir, key)
	if err != nil {
		return 0, err
	}
	if err = errors.Join(fill(ctx, s, from, dir), s.Close()); err != nil {
		return 0, err
	}
	if s, err = open(dir, key); err != nil {
		return 0, err
	}
	return want.rows, errors.Join(compare(ctx, s, want, dir), s.Close())
}

// fill commits the rows of an export to an empty store.
func fill(ctx context.Context, s store.Store, from io.ReadSeeker, dir string) error {
	for r, err := range s.Load(ctx) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: directory %s is not empty, it has a row with key %q: import into a new one",
			store.ErrInvalid, dir, r.Key)
	}
	b := &store.Batch{}
	for r, err := range imported(from) {
		if err != nil {
			return err
		}
		if b.Size()+len(r.Key)+len(r.Value) > importBatch || b.Len() == store.MaxRows {
			if err := s.Commit(ctx, b); err != nil {
				return err
			}
			b = &store.Batch{}
		}
		b.Put(r.Key, r.Value)
	}
	return s.Commit(ctx, b)
}

// compare reads all rows and compares them with what was exported.
func compare(ctx context.Context, s store.Store, want sum, dir string) error {
	got := newSum()
	for r, err := range s.Load(ctx) {
		if err != nil {
			return err
		}
		got.add(r)
	}
	if !want.equal(got) {
		return fmt.Errorf("%w: directory %s does not hold the rows that were written: delete it",
			store.ErrCorrupt, dir)
	}
	return nil
}

func (s sum) equal(o sum) bool {
	return s.rows == o.rows && bytes.Equal(s.hash.Sum(nil), o.hash.Sum(nil))
}

// imported yields the rows of an export, from its begin. It ends with an error unless the export is
// complete and as it was written. Its errors wrap store.ErrInvalid, except those of reading.
func imported(from io.ReadSeeker) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			yield(store.Row{}, fmt.Errorf("import: %w", err))
			return
		}
		in, got, last := json.NewDecoder(from), newSum(), ""
		for n := 1; ; n++ {
			var line exported
			if err := in.Decode(&line); err != nil {
				yield(store.Row{}, broken(n, "%w", err))
				return
			}
			r := store.Row{Key: string(line.Key), Value: line.Value}
			if line.Kind == end {
				if err := line.closes(n, got, in); err != nil {
					yield(store.Row{}, err)
				}
				return
			}
			if err := line.check(n, last); err != nil || !yield(r, nil) {
				if err != nil {
					yield(store.Row{}, err)
				}
				return
			}
			last = r.Key
			got.add(r)
		}
	}
}

// check returns an error unless the line is an intact row whose key is above the last one.
func (l *exported) check(n int, last string) error {
	one := &store.Batch{}
	one.Put(string(l.Key), l.Value)
	switch err := one.Validate(); {
	case l.Error != "":
		return broken(n, "the exported directory was damaged (%s): start the member with an empty one, which the others fill",
			l.Error)
	case err != nil:
		return broken(n, "%w", err)
	case string(l.Key) <= last:
		return broken(n, "its key is not above that of the line before")
	}
	return nil
}

// closes returns an error unless the line is the end of an export with these rows.
func (l *exported) closes(n int, got sum, in *json.Decoder) error {
	if l.Rows != got.rows || !slices.Equal(l.Value, got.hash.Sum(nil)) {
		return broken(n, "the export was altered: its %d rows do not match the %d that it had",
			got.rows, l.Rows)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return broken(n+1, "text after the end of the export")
	}
	return nil
}

func broken(line int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the export is incomplete: its last line is missing")
	}
	return fmt.Errorf("%w: line %d: %w", store.ErrInvalid, line, err)
}
