package expiry

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Config configures a table.
type Config struct {
	Skew int64 // maximum difference of two clocks
	Turn int64 // time that a member has to delete an entry before it is the next one's turn
}

// Table holds the entries that can expire. All its knowledge of time comes from the moments that it
// is given.
type Table struct {
	cfg    Config
	self   uint64   // hash of the member's id
	others []uint64 // hashes of the other members' ids
	index  map[string]int32
	items  []item
	free   []int32
	heap   []int32 // items, the one that is due first at the front
}

// item is an entry.
//
// Invariant: it is due at base + turns·Turn; while turns is -1, it is due at base, to be ranked.
type item struct {
	key string
	use int64 // the known stamp; 0: none
	ttl int64
	// base is when the entry expires or was seen, whichever is later; without a stamp, when it was
	// seen.
	base  int64
	turns int32
	pos   int32 // position in the heap
}

// Due is an entry that the member must handle. If Use is 0, the member adds a stamp; otherwise it
// deletes the entry if that still has this Use and TTL.
type Due struct {
	Key      string
	Use, TTL int64
}

// New returns an empty table for a member that sees no others.
func New(cfg Config) *Table {
	return &Table{cfg: cfg, index: map[string]int32{}}
}

// View sets the ids of this member and of the others. Entries that wait for a turn are ranked
// again.
func (t *Table) View(self string, others []string) {
	t.self = xxhash.Sum64String(self)
	t.others = t.others[:0]
	for _, id := range others {
		t.others = append(t.others, xxhash.Sum64String(id))
	}
	for i := range t.items {
		if it := &t.items[i]; it.key != "" && it.turns >= 0 {
			it.turns = t.rank(it.key)
			t.moved(it.pos)
		}
	}
}

// Put sets the last use and the time to live of an entry that has changed. A stamp in the future
// counts as a use at this moment, so that no clock keeps an entry longer than a use does. A stamp
// that no clock within the skew can have made counts so whenever the entry changes, since it may
// hide valid stamps.
func (t *Table) Put(now int64, key string, use, ttl int64) {
	i, known := t.index[key]
	if known && t.items[i].use == use && t.items[i].ttl == ttl && use <= now+t.cfg.Skew {
		return
	}
	if !known {
		i = t.room()
		key = strings.Clone(key)
		t.index[key] = i
		t.items[i].key, t.items[i].pos = key, int32(len(t.heap))
		t.heap = append(t.heap, i)
	}
	it := &t.items[i]
	it.use, it.ttl, it.turns = use, ttl, -1
	if it.base = now; use > 0 {
		it.base = max(now, min(use, now)+lasts(ttl, t.cfg.Skew))
	}
	t.moved(it.pos)
}

// Drop removes an entry that no longer exists, or does not expire.
func (t *Table) Drop(key string) {
	i, known := t.index[key]
	if !known {
		return
	}
	delete(t.index, key)
	pos, last := t.items[i].pos, int32(len(t.heap)-1)
	t.swap(pos, last)
	t.heap = t.heap[:last]
	if pos < last {
		t.moved(pos)
	}
	t.items[i] = item{}
	t.free = append(t.free, i)
}

// Next returns when Due may have an entry; ok is false if the table is empty.
func (t *Table) Next() (at int64, ok bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.at(0), true
}

// Due appends up to most entries that this member must handle now. An entry that nobody handles is
// returned again after all members have had their turn.
func (t *Table) Due(now int64, most int, dst []Due) []Due {
	for most > 0 && len(t.heap) > 0 && t.at(0) <= now {
		it := &t.items[t.heap[0]]
		if it.turns < 0 {
			it.turns = t.rank(it.key)
		} else {
			dst, most = append(dst, Due{it.key, it.use, it.ttl}), most-1
			past := int32(max(0, min((now-it.base)/t.cfg.Turn, 1<<30)))
			it.turns = max(it.turns, past) + int32(len(t.others)) + 1
		}
		t.down(0)
	}
	return dst
}

// rank returns the number of members whose turn is before this one's: those with a larger hash.
func (t *Table) rank(key string) (before int32) {
	k := xxhash.Sum64String(key)
	mine := mix(k ^ t.self)
	for _, o := range t.others {
		if h := mix(k ^ o); h > mine || h == mine && o > t.self {
			before++
		}
	}
	return before
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// room returns the index of an unused item.
func (t *Table) room() int32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i
	}
	t.items = append(t.items, item{})
	return int32(len(t.items) - 1)
}

// at returns when the item at a position of the heap is due.
func (t *Table) at(pos int32) int64 {
	it := &t.items[t.heap[pos]]
	return it.base + int64(max(it.turns, 0))*t.cfg.Turn
}

// less orders the heap, with ties in the order of the keys.
func (t *Table) less(a, b int32) bool {
	if x, y := t.at(a), t.at(b); x != y {
		return x < y
	}
	return t.items[t.heap[a]].key < t.items[t.heap[b]].key
}

func (t *Table) swap(a, b int32) {
	t.heap[a], t.heap[b] = t.heap[b], t.heap[a]
	t.items[t.heap[a]].pos, t.items[t.heap[b]].pos = a, b
}

// moved restores the order of the heap after the due time of one item has changed.
func (t *Table) moved(pos int32) {
	for pos > 0 && t.less(pos, (pos-1)/2) {
		t.swap(pos, (pos-1)/2)
		pos = (pos - 1) / 2
	}
	t.down(pos)
}

func (t *Table) down(pos int32) {
	for {
		first := 2*pos + 1
		if first >= int32(len(t.heap)) {
			return
		}
		if second := first + 1; second < int32(len(t.heap)) && t.less(second, first) {
			first = second
		}
		if !t.less(first, pos) {
			return
		}
		t.swap(pos, first)
		pos = first
	}
}
