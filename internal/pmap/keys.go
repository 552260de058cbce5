package pmap

import (
	"slices"
	"strings"
)

// packed is a sorted list of keys that lie in one string. It is never written
// once a node holds it, and nodes that have the same keys share it.
//
// Invariant: len(ends) keys; key i is blob[ends[i-1]:ends[i]], with ends[-1] = 0;
// key(i) < key(i+1); ends[len(ends)-1] == len(blob).
type packed struct {
	blob string
	ends []uint32
}

// start returns where key i begins; start(len(ends)) is the end of the last key.
func (p *packed) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return p.ends[i-1]
}

// key returns key i, a substring of the blob.
func (p *packed) key(i int) string {
	return p.blob[p.start(i):p.ends[i]]
}

// size returns how many bytes the keys [i,j) have together.
func (p *packed) size(i, j int) int {
	return int(p.start(j) - p.start(i))
}

// search returns the first i with key(i) >= k, and whether it is equal. It compares with < and not
// with strings.Compare, which would send keys built on the stack of the caller to the heap.
func (p *packed) search(k string) (int, bool) {
	lo, hi := 0, len(p.ends)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.key(mid) < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(p.ends) && p.key(lo) == k
}

// past returns the first i whose key lies behind all strings that begin with
// prefix. It spares building the least such string, which would allocate.
func (p *packed) past(prefix string) int {
	lo, hi := 0, len(p.ends)
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

// splice returns a copy in which ins stands in the place of the keys [i,j).
func (p *packed) splice(i, j int, ins ...string) packed {
	from, to := p.start(i), p.start(j)
	grow := 0
	for _, k := range ins {
		grow += len(k)
	}
	var b strings.Builder
	b.Grow(len(p.blob) - int(to-from) + grow)
	ends := make([]uint32, len(p.ends)-(j-i)+len(ins))
	b.WriteString(p.blob[:from])
	copy(ends, p.ends[:i])
	for x, k := range ins {
		b.WriteString(k)
		ends[i+x] = uint32(b.Len())
	}
	b.WriteString(p.blob[to:])
	shift := from + uint32(grow) - to // wraps when the list shrinks, and so does the sum
	rest := ends[i+len(ins):]
	for x, e := range p.ends[j:] {
		rest[x] = e + shift
	}
	return packed{b.String(), ends}
}

// slice returns a copy of the keys [i,j).
func (p *packed) slice(i, j int) packed {
	from := p.start(i)
	ends := make([]uint32, j-i)
	for x, e := range p.ends[i:j] {
		ends[x] = e - from
	}
	return packed{strings.Clone(p.blob[from:p.start(j)]), ends}
}

// concat returns the keys of p and behind them those of q.
func (p *packed) concat(q packed) packed {
	ends := slices.Concat(p.ends, q.ends)
	for x := range q.ends {
		ends[len(p.ends)+x] += uint32(len(p.blob))
	}
	return packed{p.blob + q.blob, ends}
}

// separator returns the shortest s with a < s <= b, a substring of b. It wants a < b.
func separator(a, b string) string {
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return b[:i+1]
}
