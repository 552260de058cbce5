package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
)

// Kind is the kind of a row.
type Kind string

// The kinds.
const (
	Header  Kind = "header"  // what all other rows must match
	Members Kind = "members" // the replica's memory of the members
	Staged  Kind = "staged"  // the future value of a row, when a change takes several batches
	Atom    Kind = "atom"    // one live fact of an entry
	Part    Kind = "part"    // of an atom that is too large for a row
	Mark    Kind = "mark"    // note that a counter slot of an entry was reset
	Vector  Kind = "vector"  // the number of covered events of one replica
	Unknown Kind = "unknown"
)

// Row is one row with its meaning.
type Row struct {
	store.Row
	Kind Kind
	// Generation is set for Atom, Part, Mark and Vector. Rows of an older generation wait for a
	// refill from the other replicas.
	Generation uint64
	Entry      string // key of the entry, for Atom, Part and Mark
}

// Describe returns the meaning of a row, which it derives from the key.
func Describe(r store.Row) Row {
	out := Row{Row: r, Kind: Unknown}
	switch {
	case r.Key == "H":
		out.Kind = Header
	case r.Key == "M":
		out.Kind = Members
	case strings.HasPrefix(r.Key, "R"):
		out.Kind = Staged
	case strings.HasPrefix(r.Key, "d"):
		out.describeData()
	case strings.HasPrefix(r.Key, "v"):
		if g, n := binary.Uvarint([]byte(r.Key[1:])); n > 0 {
			out.Kind, out.Generation = Vector, g
		}
	}
	return out
}

var dataKinds = map[byte]Kind{'a': Atom, 'b': Part, 'k': Mark, 'l': Mark}

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

// Walk yields all rows with their meaning, as Store.Load does. A corrupt row comes with an error
// that wraps store.ErrCorrupt, and without a key if rows are missing; the walk then continues. Any
// other error ends the walk.
func Walk(ctx context.Context, s store.Store) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for r, err := range s.Load(ctx) {
			if !yield(Describe(r), err) {
				return
			}
		}
	}
}

// String describes the row, with its size, for people to read.
func (r Row) String() string {
	name := string(r.Kind)
	if r.Entry != "" {
		name += fmt.Sprintf(" of %q", r.Entry)
	}
	return fmt.Sprintf("%s, %d bytes", name, len(r.Key)+len(r.Value))
}
