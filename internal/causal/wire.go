package causal

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/field"
	"github.com/concord-go/concord/internal/pmap"
)

// wireVersion is the version of the encodings in proto/crdt.proto.
const wireVersion = 1

// AppendState appends the canonical encoding of s and of its owner's vector: the message ValueState
// of proto/crdt.proto.
func AppendState(dst []byte, s Store, seen Vector) ([]byte, error) {
	if s.Len() > MaxPaths || s.marks.Len() > MaxPaths {
		return dst, fmt.Errorf("%w: %d elements, %d marks", ErrTooLarge, s.Len(), s.marks.Len())
	}
	t := vectorTable(seen)
	b, err := appendState(dst, &t, s, seen)
	if t.short {
		t = stateTable(s, seen)
		b, err = appendState(dst, &t, s, seen)
	}
	if err != nil {
		return dst, err
	}
	return b, nil
}

func appendState(dst []byte, t *table, s Store, seen Vector) ([]byte, error) {
	if len(t.ids) > MaxReplicas {
		return dst, fmt.Errorf("%w: %d replicas", ErrTooLarge, len(t.ids))
	}
	start := len(dst)
	b := field.Number(dst, 1, wireVersion)
	b = t.appendTo(b, seen)
	size, last := 0, ""
	for path, e := range s.atoms.All() {
		b = appendEntry(b, t, last, path, e)
		size, last = size+len(path), path
	}
	b = appendMarks(b, 5, t, s.Marks())
	if len(b)-start > MaxState || size > MaxState {
		return dst, fmt.Errorf("%w: state of %d bytes, %d in paths", ErrTooLarge, len(b)-start,
			size)
	}
	return b, nil
}

// stateTable collects the replicas used in the encoding of s.
func stateTable(s Store, seen Vector) table {
	t := vectorTable(seen)
	for _, e := range s.atoms.All() {
		t.add(e.first.Replica)
		for _, l := range e.more() {
			t.add(l.Replica)
		}
	}
	for _, m := range s.marks.All() {
		t.add(m.By.Replica)
	}
	return t
}

// Named returns the entries of seen for the replicas that the store names.
func (s Store) Named(seen Vector) Vector {
	named := stateTable(s, Vector{}).ids
	dots := make([]Dot, 0, len(named))
	for _, r := range named {
		if n := seen.Get(r); n > 0 {
			dots = append(dots, Dot{r, n})
		}
	}
	return vectorOf(dots)
}

// appendEntry appends the entry at path. last is the path of the previous entry.
func appendEntry(b []byte, t *table, last, path string, e Entry) []byte {
	shared := commonPrefix(last, path)
	b, at := field.Begin(b, 4)
	b = field.Number(b, 1, uint64(shared))
	b = field.Text(b, 2, path[shared:])
	b = AppendLeaf(b, 3, t.index(e.first.Replica), e.First())
	for _, l := range e.more() {
		var from int
		b, from = field.Begin(b, 6)
		b = field.End(AppendLeaf(b, 1, t.index(l.Replica), l), from)
	}
	return field.End(b, at)
}

func appendMarks(b []byte, num protowire.Number, t *table, marks iter.Seq2[string, Mark]) []byte {
	for path, mark := range marks {
		var at int
		b, at = field.Begin(b, num)
		b = field.End(AppendMark(b, path, mark, t.index(mark.By.Replica)), at)
	}
	return b
}

// ParseValue decodes the encoding written by AppendState and accepts no other form. It returns
// ErrMalformed for other bytes and for atoms that the vector does not cover, ErrVersion for those
// of a later version, and ErrTooLarge over a limit. It allocates at most a small multiple of
// len(src).
func ParseValue(src []byte) (Store, Vector, error) {
	s, seen, t, err := parseState(src)
	if err == nil {
		err = t.covered(seen)
	}
	if err != nil {
		return Store{}, Vector{}, err
	}
	return s, seen, nil
}

func parseState(src []byte) (s Store, seen Vector, t table, err error) {
	if len(src) > MaxState {
		return s, seen, t, fmt.Errorf("%w: state of %d bytes", ErrTooLarge, len(src))
	}
	r := reader{b: src}
	if err := r.version(); err != nil {
		return s, seen, t, err
	}
	if t, seen, err = readTable(&r); err != nil {
		return Store{}, Vector{}, t, err
	}
	var x indexer
	if s.atoms, err = readEntries(&r, &t, &x); err != nil {
		return Store{}, Vector{}, t, err
	}
	s.index = x.index()
	if s.marks, err = readMarks(&r, 5, &t); err != nil {
		return Store{}, Vector{}, t, err
	}
	if err := r.done("state"); err != nil {
		return Store{}, Vector{}, t, err
	}
	if err := t.allUsed(); err != nil {
		return Store{}, Vector{}, t, err
	}
	return s, seen, t, nil
}

func readEntries(r *reader, t *table, x *indexer) (m pmap.Map[Entry], err error) {
	var b pmap.Builder[Entry]
	var path []byte
	size := 0
	for count := 1; ; count++ {
		er, ok := r.message(4)
		if !ok {
			return b.Map(), nil
		}
		if path, err = readPath(&er, path); err != nil {
			return m, err
		}
		if size += len(path); size > MaxState || len(path) > MaxPath || count > MaxPaths {
			return m, fmt.Errorf("%w: paths of state", ErrTooLarge)
		}
		at := string(path)
		e, err := readEntry(&er, t, at)
		if err != nil {
			return m, err
		}
		b.Add(path, e)
		x.add(at)
	}
}

// readPath reads the path of an entry, and overwrites the previous path last.
func readPath(r *reader, last []byte) ([]byte, error) {
	shared := r.number(1)
	rest := r.bytes(2)
	if r.bad || len(rest) == 0 || shared > uint64(len(last)) {
		return nil, fmt.Errorf("%w: path", ErrMalformed)
	}
	// If the bytes are equal, more could be shared; otherwise the paths do not ascend.
	if n := int(shared); n < len(last) && last[n] >= rest[0] {
		return nil, fmt.Errorf("%w: order of paths", ErrMalformed)
	}
	return append(last[:shared], rest...), nil
}

func readEntry(r *reader, t *table, path string) (e Entry, err error) {
	first := t.atom(r, 3)
	e = One(first)
	if err := CheckAtom(path, first); err != nil {
		return e, err
	}
	var more []Leaf
	for last := first.Replica; ; {
		mr, ok := r.message(6)
		if !ok {
			break
		}
		l := t.atom(&mr, 1)
		if l.Replica <= last {
			mr.fail()
		}
		if err := mr.done("atom"); err != nil {
			return e, err
		}
		if err := CheckAtom(path, l); err != nil {
			return e, err
		}
		more, last = append(more, l), l.Replica
	}
	if more != nil {
		e = entryOf(append([]Leaf{first}, more...))
	}
	return e, r.done("entry")
}

func readMarks(r *reader, num protowire.Number, t *table) (marks pmap.Map[Mark], err error) {
	var b pmap.Builder[Mark]
	last := ""
	for count := 1; ; count++ {
		mr, ok := r.message(num)
		if !ok {
			return b.Map(), nil
		}
		path := string(mr.bytes(1))
		m := Mark{N: mr.number(2), Plus: mr.number(3), Minus: mr.number(4)}
		m.By = t.dot(&mr, 5)
		if owner, slot := SlotOwner(path); !slot || owner == 0 || m.N == 0 || path <= last {
			mr.fail()
		}
		if err := mr.done("mark"); err != nil {
			return marks, err
		}
		if count > MaxPaths || len(path) > MaxPath {
			return marks, fmt.Errorf("%w: marks", ErrTooLarge)
		}
		b.Add([]byte(path), m)
		last = path
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
