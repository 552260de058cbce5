package expiry

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Config of a table.
type Config struct {
	Skew int64 // by how much two clocks may differ
	Turn int64 // how long a member that is to delete an entry has for it, before the next one does
}

// Table has the entries that can expire. It knows nothing of its member's clock but the moments it is given.
type Table struct {
	cfg    Config
	self   uint64   // hash of the member's id
	others []uint64 // of the other members'
	index  map[string]int32
	items  []item
	free   []int32
	heap   []int32 // items, the one that is due first in front
}

// item is an entry.
//
// Invariant: it is due at base + turns·Turn, or at base, to be ranked, while turns is -1.
type item struct {
	key   string
	use   int64 // the stamp that was seen; 0: none
	ttl   int64
	base  int64 // when it expires, or was seen if that is later; of one without a stamp: when it was seen
	turns int32
	pos   int32 // in the heap
}

// Due is an entry that the member is to do something about: delete what it holds if it still says Use and TTL; put a
// stamp on it if Use is 0.
type Due struct {
	Key      string
	Use, TTL int64
}

// New returns an empty table of a member that sees no others.
func New(cfg Config) *Table {
	return &Table{cfg: cfg, index: map[string]int32{}}
}

// Len returns the number of entries.
func (t *Table) Len() int { return len(t.index) }

// View tells the ids of this member and of the others. What waits for a turn gets another one.
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

// Put tells what an entry that has changed says of its last use, and its time to live. A stamp of the future counts as one
// of this moment, so that no clock keeps an entry for longer than a use does. One that no clock within the skew has made counts
// so whenever the entry changes: honest stamps may lie below it.
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

// Drop forgets an entry that is not there any more, or does not expire.
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

// Next returns when Due may have something; false: never, as it is.
func (t *Table) Next() (at int64, ok bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.at(0), true
}

// Due appends up to most entries that it is this member's turn to do something about. Each comes again if nothing has become
// of it when all members have had their turn.
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

// rank returns how many members are to delete an entry before this one: those with a larger hash.
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

// room returns the index of an item that is not used.
func (t *Table) room() int32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i
	}
	t.items = append(t.items, item{})
	return int32(len(t.items) - 1)
}

// at returns when the item at a place of the heap is due.
func (t *Table) at(pos int32) int64 {
	it := &t.items[t.heap[pos]]
	return it.base + int64(max(it.turns, 0))*t.cfg.Turn
}

// less orders the heap. What is due at the same time is in the order of the keys.
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

// moved restores the order of the heap, of which one item is due at another time.
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
