package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
)

// The kinds of rows.
const (
	header  = "header"
	members = "members"
	staged  = "staged"
	atom    = "atom"
	part    = "part"
	mark    = "mark"
	vector  = "vector"
	unknown = "unknown"
)

// Row is one row with its meaning.
type Row struct {
	store.Row
	// Kind is "header", which all other rows must match; "members", the replica's memory of the
	// members; "vector", the number of covered events of one replica; "atom", one live fact of an
	// entry; "part", of an atom that is too large for a row; "mark", which records that a counter
	// slot of an entry was reset; "staged", the future value of a row, when a change takes several
	// batches; or "unknown".
	Kind string
	// Generation is set for atoms, parts, marks and vectors. Rows of an older generation wait for a
	// refill from the other replicas.
	Generation uint64
	Entry      string // key of the entry, for atoms, parts and marks
}

// describe returns the meaning of a row, which it derives from the key.
func describe(r store.Row) Row {
	out := Row{Row: r, Kind: unknown}
	switch {
	case r.Key == "H":
		out.Kind = header
	case r.Key == "M":
		out.Kind = members
	case strings.HasPrefix(r.Key, "R"):
		out.Kind = staged
	case strings.HasPrefix(r.Key, "d"):
		out.describeData()
	case strings.HasPrefix(r.Key, "v"):
		if g, n := binary.Uvarint([]byte(r.Key[1:])); n > 0 {
			out.Kind, out.Generation = vector, g
		}
	}
	return out
}

var dataKinds = map[byte]string{'a': atom, 'b': part, 'k': mark, 'l': mark}

// describeData parses the generation, the key of the entry, 0xFF and a letter.
func (r *Row) describeData() {
	g, n := binary.Uvarint([]byte(r.Key[1:]))
	if n <= 0 {
		return
	}
	entry, rest, found := strings.Cut(r.Key[1+n:], "\xff")
	if !found || rest == "" {
		return
	}
	if kind, known := dataKinds[rest[0]]; known {
		r.Kind, r.Generation, r.Entry = kind, g, entry
	}
}

// walk yields all rows with their meaning, as Store.Load does. A corrupt row comes with an error
// that wraps store.ErrCorrupt, and without a key if rows are missing; the walk then continues. Any
// other error ends the walk.
func walk(ctx context.Context, s store.Store) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if s == nil {
			yield(Row{}, fmt.Errorf("%w: the store is nil", store.ErrInvalid))
			return
		}
		for r, err := range s.Load(ctx) {
			if !yield(describe(r), err) {
				return
			}
		}
	}
}

// String describes the row, with its size, for people to read.
func (r Row) String() string {
	name := r.Kind
	if r.Entry != "" {
		name += fmt.Sprintf(" of %q", r.Entry)
	}
	return fmt.Sprintf("%s, %d bytes", name, len(r.Key)+len(r.Value))
}
