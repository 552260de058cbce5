package pmap

import (
	"encoding/binary"
	"strings"
)

// packed is a sorted list of keys in one string: first the offsets of the keys in it and of the end,
// four bytes each, then the keys. It is never written once a node holds it, and nodes that have the
// same keys share it. The zero value is the empty list.
//
// Invariant: key(i) < key(i+1).
type packed struct{ text string }

// empty is the text of an empty list that is to be read: the offset of its end.
const empty = "\x04\x00\x00\x00"

// usual is how many keys have their offsets put together on the stack.
const usual = maxInner

// pack returns the keys that end at these places of a buffer.
func pack(keys []byte, ends []uint32) packed {
	var room [4 * (usual + 1)]byte
	head := uint32(4 * (len(ends) + 1))
	table := binary.LittleEndian.AppendUint32(room[:0], head)
	for _, end := range ends {
		table = binary.LittleEndian.AppendUint32(table, head+end)
	}
	var b strings.Builder // a sum of strings made of bytes would copy them twice
	b.Grow(len(table) + len(keys))
	b.Write(table)
	b.Write(keys)
	return packed{b.String()}
}

// start returns where key i begins; start(len()) is the end of the last key.
func (p *packed) start(i int) uint32 {
	s := p.text[4*i : 4*i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// len returns the number of keys: those are behind len()+1 offsets.
func (p *packed) len() int {
	if p.text == "" {
		return 0
	}
	return int(p.start(0)/4) - 1
}

// key returns key i, a substring of the text.
func (p *packed) key(i int) string { return p.text[p.start(i):p.start(i+1)] }

// size returns how many bytes the keys [i,j) have together.
func (p *packed) size(i, j int) int { return int(p.start(j) - p.start(i)) }

// bytes returns how many bytes all keys have together.
func (p *packed) bytes() int { return len(p.text) - 4*(p.len()+1) }

// search returns the first i with key(i) >= k, and whether it is equal. It compares with < and not
// with strings.Compare, which would send keys built on the stack of the caller to the heap.
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

// past returns the first i whose key lies behind all strings that begin with
// prefix. It spares building the least such string, which would allocate.
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

// alike returns how many keys from i on are the keys of q from j on. Where they are all the same, as
// in maps that were built apart, it compares them as one string.
func (p *packed) alike(i int, q *packed, j int) (n int) {
	limit := min(p.len()-i, q.len()-j)
	if i == j && p.text == q.text {
		return limit
	}
	from, to := p.start(i), q.start(j)
	for n < limit && p.start(i+n+1)-from == q.start(j+n+1)-to { // of the same length
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

// offsets appends where the keys [i,j) begin, moved by shift.
func (p *packed) offsets(dst []byte, i, j int, shift uint32) []byte {
	for x := i; x < j; x++ {
		dst = binary.LittleEndian.AppendUint32(dst, p.start(x)+shift)
	}
	return dst
}

// splice returns a copy in which ins stands in the place of the keys [i,j).
func (p *packed) splice(i, j int, ins ...string) packed {
	if p.text == "" {
		p = &packed{empty}
	}
	var room [4 * (usual + 1)]byte
	n := p.len()
	shift := uint32(4 * (len(ins) - (j - i))) // wraps when the list shrinks, and so do the sums
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

// concat returns the keys of p and behind them those of q.
func (p *packed) concat(q packed) packed {
	var room [4 * (usual + 1)]byte
	n, m := p.len(), q.len()
	shift := uint32(4 * m)
	table := p.offsets(room[:0], 0, n, shift)
	table = q.offsets(table, 0, m+1, p.start(n)+shift-q.start(0))
	return together(table, p.text[p.start(0):], q.text[q.start(0):])
}

// together returns the keys of a table and two texts.
func together(table []byte, first, rest string) packed {
	var b strings.Builder
	b.Grow(len(table) + len(first) + len(rest))
	b.Write(table)
	b.WriteString(first)
	b.WriteString(rest)
	return packed{b.String()}
}

// separator returns the shortest s with a < s <= b, a substring of b. It wants a < b.
func separator(a, b string) string {
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return b[:i+1]
}
