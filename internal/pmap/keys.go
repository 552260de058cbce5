package pmap

import (
	"encoding/binary"
	"strings"
)

// packed is a sorted list of keys in one string: the start offsets of the keys and the end offset,
// four bytes each, followed by the keys. It is immutable once a node holds it, and nodes with the
// same keys share it. The zero value is the empty list.
//
// Invariant: key(i) < key(i+1).
type packed struct{ text string }

// empty is the text of a readable empty list: its end offset.
const empty = "\x04\x00\x00\x00"

// usual is the number of keys up to which offsets are assembled on the stack.
const usual = maxInner

// pack returns the keys that end at the given offsets of a buffer.
func pack(keys []byte, ends []uint32) packed {
	var room [4 * (usual + 1)]byte
	head := uint32(4 * (len(ends) + 1))
	table := binary.LittleEndian.AppendUint32(room[:0], head)
	for _, end := range ends {
		table = binary.LittleEndian.AppendUint32(table, head+end)
	}
	var b strings.Builder // concatenating converted byte slices would copy them twice
	b.Grow(len(table) + len(keys))
	b.Write(table)
	b.Write(keys)
	return packed{b.String()}
}

// start returns the offset of key i; start(len()) is the end of the last key.
func (p *packed) start(i int) uint32 {
	s := p.text[4*i : 4*i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// len returns the number of keys, which follow len()+1 offsets.
func (p *packed) len() int {
	if p.text == "" {
		return 0
	}
	return int(p.start(0)/4) - 1
}

// key returns key i, a substring of the text.
func (p *packed) key(i int) string { return p.text[p.start(i):p.start(i+1)] }

// size returns the total length of the keys [i,j).
func (p *packed) size(i, j int) int { return int(p.start(j) - p.start(i)) }

// bytes returns the total length of all keys.
func (p *packed) bytes() int { return len(p.text) - 4*(p.len()+1) }

// search returns the first i with key(i) >= k, and whether they are equal. It compares with <
// instead of strings.Compare, with which keys built on the caller's stack would escape to the heap.
func (p *packed) search(k string) (int, bool) {
	n := p.len()
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.key(mid) < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < n && p.key(lo) == k
}

// past returns the first i whose key is greater than all strings that begin with prefix. It avoids
// building such a string, which would allocate.
func (p *packed) past(prefix string) int {
	lo, hi := 0, p.len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if k := p.key(mid); k < prefix || strings.HasPrefix(k, prefix) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// alike returns how many keys from i on equal the keys of q from j on. If all are equal, as in maps
// built separately, it compares them as one string.
func (p *packed) alike(i int, q *packed, j int) (n int) {
	limit := min(p.len()-i, q.len()-j)
	if i == j && p.text == q.text {
		return limit
	}
	from, to := p.start(i), q.start(j)
	for n < limit && p.start(i+n+1)-from == q.start(j+n+1)-to { // of equal length
		n++
	}
	if p.text[from:p.start(i+n)] == q.text[to:q.start(j+n)] {
		return n
	}
	limit = n
	for n = 0; n < limit && p.key(i+n) == q.key(j+n); {
		n++
	}
	return n
}

// offsets appends the start offsets of the keys [i,j), shifted by shift.
func (p *packed) offsets(dst []byte, i, j int, shift uint32) []byte {
	for x := i; x < j; x++ {
		dst = binary.LittleEndian.AppendUint32(dst, p.start(x)+shift)
	}
	return dst
}

// splice returns a copy with the keys [i,j) replaced by ins.
func (p *packed) splice(i, j int, ins ...string) packed {
	if p.text == "" {
		p = &packed{empty}
	}
	var room [4 * (usual + 1)]byte
	n := p.len()
	// If the list shrinks, shift wraps around, and so do the sums with it.
	shift := uint32(4 * (len(ins) - (j - i)))
	table := p.offsets(room[:0], 0, i, shift)
	at := p.start(i) + shift
	for _, k := range ins {
		table = binary.LittleEndian.AppendUint32(table, at)
		at += uint32(len(k))
	}
	table = p.offsets(table, j, n+1, at-p.start(j))
	var b strings.Builder
	b.Grow(len(p.text) + int(at) - int(p.start(j)))
	b.Write(table)
	b.WriteString(p.text[p.start(0):p.start(i)])
	for _, k := range ins {
		b.WriteString(k)
	}
	b.WriteString(p.text[p.start(j):])
	return packed{b.String()}
}

// slice returns a copy of the keys [i,j).
func (p *packed) slice(i, j int) packed {
	var room [4 * (usual + 1)]byte
	table := p.offsets(room[:0], i, j+1, uint32(4*(j-i+1))-p.start(i))
	return together(table, p.text[p.start(i):p.start(j)], "")
}

// concat returns the keys of p followed by those of q.
func (p *packed) concat(q packed) packed {
	var room [4 * (usual + 1)]byte
	n, m := p.len(), q.len()
	shift := uint32(4 * m)
	table := p.offsets(room[:0], 0, n, shift)
	table = q.offsets(table, 0, m+1, p.start(n)+shift-q.start(0))
	return together(table, p.text[p.start(0):], q.text[q.start(0):])
}

// together returns the keys with a table of offsets and the text in two parts.
func together(table []byte, first, rest string) packed {
	var b strings.Builder
	b.Grow(len(table) + len(first) + len(rest))
	b.Write(table)
	b.WriteString(first)
	b.WriteString(rest)
	return packed{b.String()}
}

// separator returns the shortest s with a < s <= b, a substring of b. It requires a < b.
func separator(a, b string) string {
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return b[:i+1]
}
