package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
)

// Entry describes the rows of one entry.
type Entry struct {
	Key     string
	Atoms   int   // live atoms; one in parts counts once for each part
	Marks   int   // marks of counter slots
	Bytes   int64 // of all its rows, keys and values
	Corrupt int   // number of its corrupt rows
}

// Report describes the content of a directory.
type Report struct {
	Entries []Entry // in ascending order of their keys
	Rows    int     // all readable rows
	Bytes   int64   // of these, keys and values
	Other   int     // rows that belong to no entry: header, members, vector
	Old     int     // rows of older generations, which wait for a refill
	Unknown int     // rows with unknown keys
	// Problems: the corrupt rows, and the reasons why rows are missing.
	Corrupt []Row
	Missing []error
}

// Sound reports whether everything that was written is there.
func (r *Report) Sound() bool { return len(r.Corrupt) == 0 && len(r.Missing) == 0 }

// Verify reads all rows, and reports the content and all problems. Its memory use grows with the
// number of entries. It returns the error that ended the walk, if there was one. If s is nil, the
// error is store.ErrInvalid.
func Verify(ctx context.Context, s store.Store) (*Report, error) {
	rep := &Report{}
	newest := uint64(0)
	for r, err := range walk(ctx, s) {
		switch {
		case errors.Is(err, store.ErrCorrupt) && r.Key == "":
			rep.Missing = append(rep.Missing, err)
			continue
		case errors.Is(err, store.ErrCorrupt):
			rep.Corrupt = append(rep.Corrupt, r)
			continue
		case err != nil:
			return rep, err
		}
		if r.Entry != "" && r.Generation > newest {
			newest, rep.Old, rep.Entries = r.Generation, rep.Rows-rep.Other-rep.Unknown, nil
		}
		rep.add(r, newest)
	}
	for _, r := range rep.Corrupt {
		rep.blame(r)
	}
	return rep, nil
}

// blame counts a corrupt row with its entry, if its key is readable.
func (r *Report) blame(row Row) {
	if row.Entry == "" {
		return
	}
	i, found := slices.BinarySearchFunc(r.Entries, row.Entry, func(e Entry, key string) int {
		return strings.Compare(e.Key, key)
	})
	if !found {
		r.Entries = slices.Insert(r.Entries, i, Entry{Key: row.Entry})
	}
	r.Entries[i].Corrupt++
}

func (r *Report) add(row Row, newest uint64) {
	size := int64(len(row.Key) + len(row.Value))
	r.Rows, r.Bytes = r.Rows+1, r.Bytes+size
	if row.Entry != "" && row.Generation < newest {
		r.Old++
		return
	}
	switch row.Kind {
	case atom, part:
		e := r.entry(row.Entry)
		e.Atoms, e.Bytes = e.Atoms+1, e.Bytes+size
	case mark:
		e := r.entry(row.Entry)
		e.Marks, e.Bytes = e.Marks+1, e.Bytes+size
	case unknown:
		r.Unknown++
	default:
		r.Other++
	}
}

// entry returns the entry of a key, which is the last one or follows it, since rows are in order.
func (r *Report) entry(key string) *Entry {
	if n := len(r.Entries); n == 0 || r.Entries[n-1].Key != key {
		r.Entries = append(r.Entries, Entry{Key: key})
	}
	return &r.Entries[len(r.Entries)-1]
}

// exported is a row in JSON; bytes are in base64.
type exported struct {
	Kind       string `json:"kind"`
	Entry      string `json:"entry,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Key        []byte `json:"key,omitempty"`
	Value      []byte `json:"value,omitempty"`
	Error      string `json:"error,omitempty"`
	Rows       int    `json:"rows,omitempty"` // of the last line
}

// Export writes all rows as lines of JSON: one line per row, and one per problem. Keys and values
// of rows are in base64. The last line, of kind "end", has the number of the rows and, as its
// value, a SHA-256 of them; Import brings the export back. Export returns the error that ended the
// walk, or the error of w. If s or w is nil, the error is store.ErrInvalid.
func Export(ctx context.Context, s store.Store, w io.Writer) error {
	if w == nil {
		return fmt.Errorf("%w: the writer is nil", store.ErrInvalid)
	}
	out, all := json.NewEncoder(w), newSum()
	for r, err := range walk(ctx, s) {
		line := exported{Kind: r.Kind, Entry: r.Entry, Generation: r.Generation, Key: []byte(r.Key),
			Value: r.Value}
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		if err != nil {
			line.Error = err.Error()
		} else {
			all.add(r.Row)
		}
		if err := out.Encode(line); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	last := exported{Kind: end, Value: all.hash.Sum(nil), Rows: all.rows}
	if err := out.Encode(last); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}
