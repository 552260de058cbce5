package core

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// gathering assembles keys from rows.
type gathering struct {
	keys   []gathered
	key    string
	leaves []causal.Atom
	marks  []causal.MarkAt
	blob   []byte // parts of an atom
	want   int    // expected length of blob
	msum   history.Sum
	fault  error
}

type gathered struct {
	key  string
	held history.Held
}

func (g *gathering) add(n rowName, value []byte) (err error) {
	if n.key != g.key {
		g.flush()
		g.key = n.key
	}
	if len(g.blob) > 0 && n.kind != rowPart {
		return malformed("parts of an atom are missing")
	}
	switch n.kind {
	case rowAtom:
		return g.atom(n.rest, value)
	case rowPart:
		return g.part(value)
	case rowMark, rowLong:
		var m causal.Mark
		var rest []byte
		if m, rest, err = parseMark(value); err == nil {
			path := n.rest
			if n.kind == rowLong {
				path = string(rest)
			}
			g.marks = append(g.marks, causal.MarkAt{Path: path, Mark: m})
		}
		return err
	}
	return malformed("kind %q", n.kind)
}

func (g *gathering) atom(rest string, value []byte) error {
	n, size := binary.Uvarint(value)
	if len(rest) <= 8 || size <= 0 || n == 0 {
		return errMalformed
	}
	r := causal.Replica(binary.BigEndian.Uint64([]byte(rest[len(rest)-8:])))
	g.leaves = append(g.leaves, causal.Atom{
		Path: rest[:len(rest)-8], Leaf: causal.Leaf{Dot: causal.Dot{Replica: r, N: n},
			Payload: string(value[size:])},
	})
	return nil
}

func (g *gathering) part(value []byte) error {
	if len(g.blob) == 0 {
		n, size := binary.Uvarint(value)
		if size <= 0 || n > maxRecord || n < 10 {
			return errMalformed
		}
		g.want, value = int(n), value[size:]
	}
	if g.blob = append(g.blob, value...); len(g.blob) < g.want {
		return nil
	}
	b := g.blob
	g.blob = nil
	n, size := binary.Uvarint(b)
	if len(b) != g.want || size <= 0 || n == 0 || n > uint64(len(b)-size-9) {
		return errMalformed
	}
	path := b[size : size+int(n)]
	rest := b[size+len(path):]
	return g.atom(string(path)+string(rest[:8]), rest[8:])
}

func parseMark(b []byte) (m causal.Mark, rest []byte, err error) {
	var by uint64
	for _, to := range []*uint64{&m.N, &m.Plus, &m.Minus, &by, &m.By.N} {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return m, nil, errMalformed
		}
		*to, b = n, b[size:]
	}
	m.By.Replica = causal.Replica(by)
	return m, bytes.Clone(b), nil
}

// flush completes a key.
func (g *gathering) flush() {
	if g.key == "" {
		return
	}
	if !slices.IsSortedFunc(g.leaves, byPath) {
		slices.SortFunc(g.leaves, byPath)
	}
	var b history.KeyBuilder
	for _, a := range g.leaves {
		if !b.Add(g.key, a) {
			g.fault = malformed("two atoms of one replica under key %q", g.key)
		}
	}
	for _, m := range g.marks {
		b.Mark(m)
		g.msum = g.msum.Plus(markSum(g.key, m.Path, m.Mark))
	}
	g.keys = append(g.keys, gathered{g.key, b.Held()})
	g.key, g.leaves, g.marks = "", g.leaves[:0], g.marks[:0]
}

// finish completes the last key, and returns the sum of the marks.
func (g *gathering) finish() history.Sum {
	g.flush()
	if len(g.blob) > 0 {
		g.fault = malformed("parts of an atom are missing")
	}
	return g.msum
}

// state returns the state of the gathered keys. In the order of the rows, a key comes after the
// keys that it is a prefix of.
func (g *gathering) state(seen causal.Vector) history.State {
	byKey := func(a, b gathered) int { return strings.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(g.keys, byKey) {
		slices.SortFunc(g.keys, byKey)
	}
	var b history.Builder
	for i, k := range g.keys {
		if i > 0 && g.keys[i-1].key == k.key {
			g.fault = malformed("key %q in two places", k.key)
			continue
		}
		b.Add(k.key, k.held)
	}
	return b.State(seen)
}
