package distributeddata

import "slices"

// pattern is a key, or a prefix of keys, in patterns.
type pattern struct {
	text  string
	exact bool
	at    int // its position in its list of the index
}

func (p *pattern) itself() *pattern { return p }

// patterns finds those of many keys and prefixes that match a key. The cost depends only on the
// number that match and on the number of different prefix lengths. The zero value is empty.
type patterns[P interface{ itself() *pattern }] struct {
	byKey    map[string][]P
	byPrefix map[string][]P
	lengths  []int       // of the prefixes, ascending
	count    map[int]int // number of prefixes of each length
}

// index returns the lists that p belongs to.
func (x *patterns[P]) index(p *pattern) map[string][]P {
	if x.count == nil {
		x.byKey, x.byPrefix, x.count = map[string][]P{}, map[string][]P{}, map[int]int{}
	}
	if p.exact {
		return x.byKey
	}
	return x.byPrefix
}

func (x *patterns[P]) add(e P) {
	p := e.itself()
	in, n := x.index(p), len(p.text)
	p.at = len(in[p.text])
	in[p.text] = append(in[p.text], e)
	if p.exact {
		return
	}
	if x.count[n]++; x.count[n] == 1 {
		at, _ := slices.BinarySearch(x.lengths, n)
		x.lengths = slices.Insert(x.lengths, at, n)
	}
}

func (x *patterns[P]) remove(e P) {
	p := e.itself()
	in, n := x.index(p), len(p.text)
	all := in[p.text]
	last := len(all) - 1
	moved := all[last]
	all[p.at], moved.itself().at = moved, p.at
	clear(all[last:])
	if in[p.text] = all[:last]; last == 0 {
		delete(in, p.text)
	}
	if p.exact {
		return
	}
	if x.count[n]--; x.count[n] == 0 {
		delete(x.count, n)
		at, _ := slices.BinarySearch(x.lengths, n)
		x.lengths = slices.Delete(x.lengths, at, at+1)
	}
}

// matching calls f for each of them that is key, or a prefix of it.
func (x *patterns[P]) matching(key string, f func(P)) {
	for _, e := range x.byKey[key] {
		f(e)
	}
	for _, n := range x.lengths {
		if n > len(key) {
			return
		}
		for _, e := range x.byPrefix[key[:n]] {
			f(e)
		}
	}
}

// all calls f for each of them.
func (x *patterns[P]) all(f func(P)) {
	for _, in := range []map[string][]P{x.byKey, x.byPrefix} {
		for _, list := range in {
			for _, e := range list {
				f(e)
			}
		}
	}
}
