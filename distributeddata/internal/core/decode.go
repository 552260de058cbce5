package core

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// cursor iterates over the fields of a message: v is the value of a number, chunk that of a field
// with a length. Readers skip fields that they do not know.
type cursor struct {
	rest  []byte
	num   protowire.Number
	v     uint64
	chunk []byte
	err   error
}

// next advances to the next field and reports whether there is one. After an error there is none.
func (c *cursor) next() bool {
	if len(c.rest) == 0 || c.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(c.rest)
	if n < 0 {
		c.err = malformed("tag")
		return false
	}
	c.num, c.v, c.chunk, c.rest = num, 0, nil, c.rest[n:]
	switch typ {
	case protowire.VarintType:
		c.v, n = protowire.ConsumeVarint(c.rest)
	case protowire.Fixed64Type:
		c.v, n = protowire.ConsumeFixed64(c.rest)
	case protowire.BytesType:
		c.chunk, n = protowire.ConsumeBytes(c.rest)
	default:
		c.err = malformed("type %d of field %d", typ, num)
		return false
	}
	if n < 0 {
		c.err = malformed("field %d", num)
		return false
	}
	c.rest = c.rest[n:]
	return true
}

func parseFixeds[T ~uint64](b []byte) ([]T, error) {
	if len(b)%8 != 0 {
		return nil, malformed("%d bytes of fixed numbers", len(b))
	}
	out := make([]T, len(b)/8)
	for i := range out {
		out[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out, nil
}

func parseHashes(b []byte) (list []history.EventHash, err error) {
	if len(b)%4 != 0 {
		return nil, malformed("%d bytes of hashes", len(b))
	}
	list = make([]history.EventHash, 0, len(b)/4)
	for ; len(b) > 0; b = b[4:] {
		list = append(list, binary.LittleEndian.Uint32(b))
	}
	return list, nil
}

// acknowledgement is a decoded acknowledgement; see encodeAck.
type acknowledgement struct {
	n, members uint64
	ready      bool
	hash       history.EventHash
}

func decodeAck(b []byte) (a acknowledgement, err error) {
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			a.n = c.v
		case 2:
			a.ready = c.v != 0
		case 3:
			a.members = c.v
		case 4:
			a.hash = history.EventHash(c.v)
		}
	}
	return a, c.err
}

func parseNumbers(b []byte) (out []uint64, err error) {
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, malformed("numbers")
		}
		out, b = append(out, v), b[n:]
	}
	return out, nil
}

func parseVector(b []byte, known bases.Find) (causal.Vector, error) {
	var name []byte
	var ids, numbers []uint64
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			ids, c.err = parseFixeds[uint64](c.chunk)
		case 2:
			numbers, c.err = parseNumbers(c.chunk)
		case 3:
			name = c.chunk
		}
	}
	if c.err != nil {
		return causal.Vector{}, c.err
	}
	return bases.Vector(name, ids, numbers, known)
}

// decoder decodes events. It allocates their parts from a few larger slabs. A text that repeats the
// previous one, such as the key of a counter, is stored once.
type decoder struct {
	t       *replicas
	about   int // expected number of events
	key     string
	path    string
	keys    []history.KeyChange
	gone    [][]bool
	adds    []causal.Atom
	removes []causal.Atom
}

// room allocates, at once, the space for a single small change, which most pushes contain.
func (r *decoder) room() {
	one := &struct {
		keys    [1]history.KeyChange
		gone    [1][]bool
		adds    [1]causal.Atom
		removes [1]causal.Atom
	}{}
	r.keys, r.gone, r.adds, r.removes = one.keys[:0], one.gone[:0], one.adds[:0], one.removes[:0]
}

// text returns b as a string. It reuses the last string if that is equal.
func text(last *string, b []byte) string {
	if string(b) != *last {
		*last = string(b)
	}
	return *last
}

// piece appends v to a list that ends a slab, and returns the slab and the list. A new slab has
// room for about more elements.
func piece[T any](slab, list []T, v T, more int) (_, _ []T) {
	if len(slab) == cap(slab) {
		slab = append(make([]T, 0, max(len(list), min(more, 512))+len(list)), list...)
	}
	slab = append(slab, v)
	n := len(slab)
	return slab, slab[n-len(list)-1 : n : n]
}

// decodePush decodes a push that an encoder wrote at origin.
func decodePush(b []byte, origin causal.Replica, known bases.Find) (*history.Delta, error) {
	in := &struct { // one allocation
		history.Delta
		replicas
		only   [1]history.DeltaEvent
		origin [1]causal.Replica
	}{}
	in.origin[0] = origin
	t := &in.replicas
	var from uint64
	var name []byte
	var ids []causal.Replica
	var numbers []uint64
	var hashes []history.EventHash
	t.others = in.origin[:]
	events := 0
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			from = c.v
		case 2:
			ids, c.err = parseFixeds[causal.Replica](c.chunk)
		case 3:
			numbers, c.err = parseNumbers(c.chunk)
		case 4:
			var others []causal.Replica
			others, c.err = parseFixeds[causal.Replica](c.chunk)
			t.others = append(in.origin[:], others...)
		case 5:
			events++
		case 6:
			name = c.chunk
		case 7:
			hashes, c.err = parseHashes(c.chunk)
		}
	}
	if c.err == nil && len(hashes) > 0 && len(hashes) != events+1 {
		c.err = malformed("%d hashes of %d events", len(hashes), events)
	}
	if c.err != nil {
		return nil, c.err
	}
	deps, err := bases.Vector(name, ids, numbers, known)
	if err != nil {
		return nil, err
	}
	t.head = deps
	if events == 0 || from > math.MaxUint64/2 || deps.Get(origin) > 0 {
		return nil, malformed("push of %d events from %d on", events, from)
	}
	d := &in.Delta
	*d = history.Delta{Base: deps.Set(origin, from), Head: deps.Set(origin, from+uint64(events)),
		Events: in.only[:0], Origin: origin, Hashes: hashes}
	r := &decoder{t: t, about: events}
	if events == 1 {
		r.room()
	} else {
		d.Events = make([]history.DeltaEvent, 0, events)
	}
	for c = (cursor{rest: b}); c.next(); {
		if c.num == 5 {
			from++
			var e history.DeltaEvent
			e, c.err = r.event(causal.Dot{Replica: origin, N: from}, c.chunk, known)
			d.Events = append(d.Events, e)
		}
	}
	return d, c.err
}

// event decodes an event; own is its dot in a push, which does not contain it.
func (r *decoder) event(own causal.Dot, b []byte, known bases.Find) (e history.DeltaEvent,
	err error) {
	var origin uint64
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			origin = c.v
		case 2:
			e.Dot.N = c.v
		case 4:
			e.Deps, c.err = parseVector(c.chunk, known)
		}
	}
	if c.err != nil {
		return e, c.err
	}
	if own.N > 0 {
		e.Dot = own
	} else if e.Dot, err = r.t.dot(origin, e.Dot.N); err != nil {
		return e, err
	}
	for c = (cursor{rest: b}); c.next(); {
		if c.num != 3 {
			continue
		}
		var k history.KeyChange
		var gone []bool
		k, gone, c.err = r.keyChange(e.Dot, c.chunk)
		if n := len(e.Keys); c.err == nil && n > 0 && e.Keys[n-1].Key >= k.Key {
			c.err = malformed("order of keys of event %v", e.Dot)
		}
		r.keys, e.Keys = piece(r.keys, e.Keys, k, r.about)
		r.gone, e.Gone = piece(r.gone, e.Gone, gone, r.about)
	}
	return e, c.err
}

// byPath compares atoms by path, then by dot.
func byPath(a, b causal.Atom) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), a.Compare(b.Dot))
}

func (r *decoder) keyChange(d causal.Dot, b []byte) (k history.KeyChange, gone []bool, err error) {
	var rest []byte
	var shared, instead uint64
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			rest = c.chunk
		case 2:
			var a causal.Atom
			var dead bool
			a, dead, instead, c.err = r.add(d, c.chunk)
			if instead > 0 {
				old := causal.Atom{Path: a.Path, Leaf: causal.Leaf{
					Dot: causal.Dot{Replica: d.Replica, N: d.N - instead}}}
				r.removes, k.Removes = piece(r.removes, k.Removes, old, r.about)
			}
			if r.adds, k.Adds = piece(r.adds, k.Adds, a, r.about); dead && gone == nil {
				gone = make([]bool, len(k.Adds)-1)
			}
			if gone != nil {
				gone = append(gone, dead)
			}
		case 3:
			var a causal.Atom
			a, c.err = r.atom(c.chunk)
			a.Payload = ""
			r.removes, k.Removes = piece(r.removes, k.Removes, a, r.about)
		case 4:
			k.Clear = c.v != 0
		case 5:
			var m causal.MarkAt
			m, c.err = decodeMark(r.t, c.chunk)
			k.Marks = append(k.Marks, m)
		case 6:
			shared = c.v
		}
	}
	if !slices.IsSortedFunc(k.Removes, byPath) {
		slices.SortFunc(k.Removes, byPath)
	}
	if limit := min(len(r.key), maxShared); c.err == nil && shared > uint64(limit) {
		c.err = malformed("%d bytes of the key before, limit %d", shared, limit)
	}
	if c.err == nil {
		k.Key = r.longer(shared, rest)
		if bad := history.CheckKey(k.Key); bad != nil {
			c.err = malformed("%v", bad)
		}
	}
	return k, gone, c.err
}

// longer returns the key that has its start, of shared bytes, from the last key.
func (r *decoder) longer(shared uint64, rest []byte) string {
	if r.key[shared:] != string(rest) {
		r.key = r.key[:shared] + string(rest)
	}
	return r.key
}

// add decodes an add, and how many events before it the atom was added that it replaces.
func (r *decoder) add(d causal.Dot, b []byte) (a causal.Atom, gone bool, instead uint64,
	err error) {
	a.Dot = d
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			a.Path = text(&r.path, c.chunk)
		case 2:
			a.Payload = string(c.chunk)
		case 3:
			gone = c.v != 0
		case 4:
			instead = c.v
		}
	}
	if c.err == nil {
		c.err = checkPath(a.Path)
	}
	if c.err == nil && instead > 0 && instead >= d.N {
		c.err = malformed("add of event %v instead of one %d before", d, instead)
	}
	return a, gone, instead, c.err
}

// atom decodes a live atom, or the name of one.
func (r *decoder) atom(b []byte) (a causal.Atom, err error) {
	var origin uint64
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			a.Path = text(&r.path, c.chunk)
		case 2:
			origin = c.v
		case 3:
			a.N = c.v
		case 4:
			a.Payload = string(c.chunk)
		}
	}
	if c.err == nil {
		c.err = checkPath(a.Path)
	}
	if c.err == nil {
		a.Dot, c.err = r.t.dot(origin, a.N)
	}
	return a, c.err
}

func decodeMark(t *replicas, b []byte) (m causal.MarkAt, err error) {
	var by uint64
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			m.Path = string(c.chunk)
		case 2:
			m.N = c.v
		case 3:
			m.Plus = c.v
		case 4:
			m.Minus = c.v
		case 5:
			by = c.v
		case 6:
			m.By.N = c.v
		}
	}
	if c.err == nil {
		c.err = checkPath(m.Path)
	}
	if c.err == nil {
		m.By, c.err = t.dot(by, m.By.N)
	}
	return m, c.err
}

func checkPath(p string) error {
	if len(p) == 0 || len(p) > causal.MaxPath {
		return malformed("path of %d bytes", len(p))
	}
	return nil
}
