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

// Entry is what a directory holds of one entry.
type Entry struct {
	Key     string
	Atoms   int   // that are live; one in parts counts once for each part
	Marks   int   // of counter slots
	Bytes   int64 // of all its rows, keys and values
	Corrupt int   // rows of it that cannot be trusted
}

// Report is what a directory holds.
type Report struct {
	Entries []Entry // in ascending order of their keys
	Rows    int     // all that can be read
	Bytes   int64   // of these, keys and values
	Other   int     // rows of no entry: header, members, vector
	Old     int     // rows of generations before the newest one, which wait for a refill
	Unknown int     // rows whose keys have no meaning
	// What is wrong: rows that cannot be trusted, and why rows are missing.
	Corrupt []Row
	Missing []error
}

// Sound reports whether all that was written is there.
func (r *Report) Sound() bool { return len(r.Corrupt) == 0 && len(r.Missing) == 0 }

// Verify reads all rows, and returns what there is and what is wrong. Its memory grows with the number of entries. The
// error is one that ended the walk.
func Verify(ctx context.Context, s store.Store) (*Report, error) {
	rep := &Report{}
	newest := uint64(0)
	for r, err := range Walk(ctx, s) {
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

// blame counts a row that cannot be trusted with its entry, if its key can be read.
func (r *Report) blame(row Row) {
	if row.Entry == "" {
		return
	}
	i, found := slices.BinarySearchFunc(r.Entries, row.Entry, func(e Entry, key string) int { return strings.Compare(e.Key, key) })
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
	case Atom, Part:
		e := r.entry(row.Entry)
		e.Atoms, e.Bytes = e.Atoms+1, e.Bytes+size
	case Mark:
		e := r.entry(row.Entry)
		e.Marks, e.Bytes = e.Marks+1, e.Bytes+size
	case Unknown:
		r.Unknown++
	default:
		r.Other++
	}
}

// entry returns the entry of a key, which is the last one or comes after it: rows are in order.
func (r *Report) entry(key string) *Entry {
	if n := len(r.Entries); n == 0 || r.Entries[n-1].Key != key {
		r.Entries = append(r.Entries, Entry{Key: key})
	}
	return &r.Entries[len(r.Entries)-1]
}

// exported is a row in JSON; bytes are in base64.
type exported struct {
	Kind       Kind   `json:"kind"`
	Entry      string `json:"entry,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Key        []byte `json:"key,omitempty"`
	Value      []byte `json:"value,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Export writes all rows as lines of JSON, one for each row, and one for each thing that is wrong. Keys and values of
// rows are in base64. The error is one that ended the walk, or of w.
func Export(ctx context.Context, s store.Store, w io.Writer) error {
	out := json.NewEncoder(w)
	for r, err := range Walk(ctx, s) {
		line := exported{Kind: r.Kind, Entry: r.Entry, Generation: r.Generation, Key: []byte(r.Key), Value: r.Value}
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		if err != nil {
			line.Error = err.Error()
		}
		if err := out.Encode(line); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	return nil
}
