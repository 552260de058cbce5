package core

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/field"
)

// A replica stores one row for each atom, each mark and each replica of the vector, so that a
// change of a large value writes only what it changed [R47]. The first byte of a row's key is its
// kind:
//
//	H                               the header, which the other rows must match
//	M                               the memory of the members
//	R row                           a redo row: a row's new value, for changes larger than a batch
//	d generation key FF a path dot  an atom; the number of its event and its payload
//	d generation key FF b hash part a part of an atom that is too large for a row
//	d generation key FF k path      a mark
//	d generation key FF l hash      a mark with a path that is too long for a row's key
//	v generation replica            the number of covered events of a replica, and their hash
//
// FF ends a key, since it does not occur in UTF-8. A store with a hole starts a new generation: the
// rows of the previous one stay until everything readable in them is in the new one.
const (
	rowHeader  = "H"
	rowMembers = "M"
	rowRedo    = "R"
	rowData    = 'd'
	rowVector  = 'v'

	endOfKey = 0xff
	rowAtom  = 'a'
	rowPart  = 'b'
	rowMark  = 'k'
	rowLong  = 'l'
)

// rowFormat is the version of this format.
const rowFormat = 1

const (
	maxRowKey   = store.MaxKey - len(rowRedo)
	maxRowValue = store.MaxValue - 16
)

// header describes the other rows. It is written with every batch.
type header struct {
	owner   string
	format  uint64
	live    uint64 // the live generation
	aside   uint64 // the first generation that is set aside; equal to live: none is
	redo    uint64 // number of redo rows
	batches uint64
	sum     history.Sum // of the atoms
	marks   history.Sum // of the marks
	vector  uint64      // hash of the vector
	origins uint64      // number of replicas in it
	members uint64      // digest of the memory of the members
	// kept says that the rows are everything that the member ever acknowledged, rather than what it
	// had of that when it was refilled.
	kept bool
	next quorum.Incarnation // as which the member was about to take its place
}

func (h header) encode() []byte {
	b := field.Number(make([]byte, 0, 128), 1, h.format)
	b = field.Text(b, 2, h.owner)
	for i, n := range []uint64{h.live, h.aside, h.redo, h.batches, h.origins} {
		b = field.Number(b, 3+protowire.Number(i), n)
	}
	for i, n := range []uint64{h.sum[0], h.sum[1], h.marks[0], h.marks[1], h.vector, h.members} {
		b = field.Fixed(b, 8+protowire.Number(i), n)
	}
	return field.Text(field.Flag(b, 14, h.kept), 15, encodeIncarnation(h.next))
}

func decodeHeader(b []byte) (h header, err error) {
	numbers := []*uint64{
		&h.live, &h.aside, &h.redo, &h.batches, &h.origins, &h.sum[0], &h.sum[1], &h.marks[0],
		&h.marks[1], &h.vector, &h.members,
	}
	c := cursor{rest: b}
	for c.next() {
		switch i := int(c.num) - 3; {
		case c.num == 1:
			h.format = c.v
		case c.num == 2:
			h.owner = string(c.chunk)
		case c.num == 14:
			h.kept = c.v != 0
		case c.num == 15:
			h.next = decodeIncarnation(c.chunk)
		case i >= 0 && i < len(numbers):
			*numbers[i] = c.v
		}
	}
	return h, c.err
}

func encodeIncarnation(i quorum.Incarnation) []byte {
	if i.Number == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 20), uint64(i.Replica))
	return binary.AppendUvarint(b, i.Number)
}

// decodeIncarnation returns none for what is not the encoding of one.
func decodeIncarnation(b []byte) (i quorum.Incarnation) {
	if len(b) > 8 {
		i.Replica = causal.Replica(binary.BigEndian.Uint64(b))
		i.Number, _ = binary.Uvarint(b[8:])
	}
	return i
}

// rowPrefix returns the prefix of the keys of the rows of a user's key.
func rowPrefix(generation uint64, key string) []byte {
	b := binary.AppendUvarint(append(make([]byte, 0, len(key)+64), rowData), generation)
	return append(append(b, key...), endOfKey)
}

// leafOps appends the operations for an atom: its rows, or their deletion.
func leafOps(ops []store.Op, prefix []byte, path string, l causal.Leaf, remove bool) []store.Op {
	if len(prefix)+1+len(path)+8 <= maxRowKey && len(l.Payload) <= maxRowValue {
		b := append(append(append([]byte(nil), prefix...), rowAtom), path...)
		row := store.Row{Key: string(binary.BigEndian.AppendUint64(b, uint64(l.Replica)))}
		if !remove {
			row.Value = append(binary.AppendUvarint(make([]byte, 0, 10+len(l.Payload)), l.N),
				l.Payload...)
		}
		return append(ops, store.Op{Row: row, Delete: remove})
	}
	blob := partsOf(path, l)
	id := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(path), uint64(l.Replica)))
	b := append(append(append([]byte(nil), prefix...), rowPart), id[:]...)
	for i := 0; len(blob) > 0; i++ {
		n := min(len(blob), maxRowValue)
		row := store.Row{Key: string(binary.BigEndian.AppendUint16(b, uint16(i)))}
		if !remove {
			row.Value = blob[:n:n]
		}
		ops, blob = append(ops, store.Op{Row: row, Delete: remove}), blob[n:]
	}
	return ops
}

// partsOf returns the concatenated parts of an atom, preceded by their length.
func partsOf(path string, l causal.Leaf) []byte {
	b := binary.AppendUvarint(make([]byte, 0, len(path)+len(l.Payload)+32), uint64(len(path)))
	b = binary.BigEndian.AppendUint64(append(b, path...), uint64(l.Replica))
	b = append(binary.AppendUvarint(b, l.N), l.Payload...)
	return append(binary.AppendUvarint(make([]byte, 0, len(b)+8), uint64(len(b))), b...)
}

// markOp returns the operation for a mark.
func markOp(prefix []byte, path string, m causal.Mark, remove bool) store.Op {
	short := len(prefix)+1+len(path) <= maxRowKey
	var row store.Row
	if short {
		row.Key = string(prefix) + string(rowMark) + path
	} else {
		id := sha256.Sum256([]byte(path))
		row.Key = string(prefix) + string(rowLong) + string(id[:])
	}
	if remove {
		return store.Op{Row: row, Delete: true}
	}
	row.Value = markValue(m)
	if !short {
		row.Value = append(row.Value, path...)
	}
	return store.Op{Row: row}
}

func markValue(m causal.Mark) []byte {
	b := make([]byte, 0, 40)
	for _, n := range []uint64{m.N, m.Plus, m.Minus, uint64(m.By.Replica), m.By.N} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// markSum returns the fingerprint of a mark.
func markSum(key, path string, m causal.Mark) history.Sum {
	return history.AtomSum(key, "mark "+path, causal.Leaf{Dot: m.By, Payload: string(markValue(m))})
}

// originOp returns the operation for a replica of the vector: the number of its covered events, and
// their hash.
func originOp(generation uint64, r causal.Replica, n uint64, x history.EventHash) store.Op {
	b := binary.AppendUvarint([]byte{rowVector}, generation)
	row := store.Row{Key: string(binary.BigEndian.AppendUint64(b, uint64(r)))}
	if n == 0 {
		return store.Op{Row: row, Delete: true}
	}
	row.Value = binary.AppendUvarint(nil, n)
	if x != 0 {
		row.Value = binary.BigEndian.AppendUint32(row.Value, x)
	}
	return store.Op{Row: row}
}

// rowName is the parsed key of a row.
type rowName struct {
	generation uint64
	vector     bool
	key        string // of the user
	kind       byte
	rest       string // what follows the kind, or the replica
}

func parseRow(key string) (n rowName, ok bool) {
	if key == "" || key[0] != rowData && key[0] != rowVector {
		return n, false
	}
	n.vector = key[0] == rowVector
	generation, size := binary.Uvarint([]byte(key[1:min(len(key), 12)]))
	if size <= 0 {
		return n, false
	}
	n.generation, n.rest = generation, key[1+size:]
	if n.vector {
		return n, len(n.rest) == 8
	}
	end := strings.IndexByte(n.rest, endOfKey)
	if end < 0 || len(n.rest) < end+2 {
		return n, false
	}
	n.key, n.kind, n.rest = n.rest[:end], n.rest[end+1], n.rest[end+2:]
	return n, history.CheckKey(n.key) == nil
}
