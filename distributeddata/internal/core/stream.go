package core

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/field"
)

// head is the first record of an answer.
type head struct {
	head, base causal.Vector
	ready      bool
	state      bool        // false: the answer is a closed delta
	records    uint64      // number of records that follow, at least
	sum        history.Sum // of the state
	partial    bool        // missing keys are those of the receiver, except the differing ones
	differing  []uint64
	members    uint64  // digest of the sender's memory of the members [M2]
	entering   bool    // the sender is a new member that has not counted yet [M3]
	hashes     origins // event hashes of the covered events of these replicas [R4]
	kept       bool    // the sender's disk has everything its member ever acknowledged [R52]
}

func (h head) encode(relative bases.Base) []byte {
	b := appendVector(nil, 1, h.head, relative)
	if h.base.Len() > 0 {
		b = appendVector(b, 2, h.base, relative)
	}
	b = field.Flag(b, 3, h.ready)
	b = field.Flag(b, 4, h.state)
	b = field.Number(b, 5, h.records)
	b = field.Fixed(b, 6, h.sum[0])
	b = field.Fixed(b, 7, h.sum[1])
	b = field.Flag(b, 8, h.partial)
	b = field.Fixeds(b, 9, h.differing)
	b = field.Fixed(b, 10, h.members)
	b = field.Flag(b, 11, h.entering)
	at, hashes := ranked(h.hashes, h.head)
	return field.Flag(field.Fixed32s(field.Numbers(b, 12, at), 13, hashes), 14, h.kept)
}

func decodeHead(b []byte, known bases.Find) (h head, err error) {
	var at []uint64
	var hashes []history.EventHash
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			h.head, c.err = parseVector(c.chunk, known)
		case 2:
			h.base, c.err = parseVector(c.chunk, known)
		case 3:
			h.ready = c.v != 0
		case 4:
			h.state = c.v != 0
		case 5:
			h.records = c.v
		case 6:
			h.sum[0] = c.v
		case 7:
			h.sum[1] = c.v
		case 8:
			h.partial = c.v != 0
		case 9:
			h.differing, c.err = parseFixeds[uint64](c.chunk)
		case 10:
			h.members = c.v
		case 11:
			h.entering = c.v != 0
		case 12:
			at, c.err = parseNumbers(c.chunk)
		case 13:
			hashes, c.err = parseHashes(c.chunk)
		case 14:
			h.kept = c.v != 0
		}
	}
	if c.err == nil {
		h.hashes, c.err = originsOf(h.head, at, hashes)
	}
	if c.err == nil && !h.base.Leq(h.head) {
		c.err = malformed("answer from %v to %v", h.base, h.head)
	}
	return h, c.err
}

// source produces an answer from the state of one instant. Parts of it are encoded as they are
// sent.
type source struct {
	head   head
	keys   history.Keys
	events []history.DeltaEvent // of a delta
	only   []string             // of a partial state: its keys

	enc     encoder
	begun   bool
	event   int // next of events, starting at place
	place   bookmark
	onlyAt  int    // next of only
	key     string // next key of a state, starting at spot
	spot    spot
	over    bool
	pending []byte // encoded bytes; those before taken have been taken
	taken   int
}

// take returns the next size bytes of the stream, or fewer at its end.
func (s *source) take(size int) (_ []byte, last bool) {
	if !s.begun {
		s.begun = true
		s.enc.t = replicasOf(s.head.head)
		s.put(s.head.encode(s.enc.base))
		s.over = s.head.state && s.keys.Len() == 0
	}
	if s.left() <= size { // the rest moves to the front at most once per size bytes taken
		s.pending, s.taken = append(s.pending[:0], s.pending[s.taken:]...), 0
	}
	for s.left() <= size && !s.over { // one byte more than size shows that another part follows
		s.record(size)
	}
	n := min(size, s.left())
	part := slices.Clone(s.pending[s.taken : s.taken+n])
	s.taken += n
	return part, s.over && s.left() == 0
}

// left returns the number of encoded bytes that have not been taken yet.
func (s *source) left() int { return len(s.pending) - s.taken }

func (s *source) put(record []byte) {
	s.pending = protowire.AppendBytes(s.pending, record)
}

// record encodes the next record, or sets over if there is none.
func (s *source) record(size int) {
	switch {
	case !s.head.state && s.event == len(s.events), s.head.partial && s.onlyAt == len(s.only):
		s.over = true
	case !s.head.state:
		s.eventPiece(size)
	case s.head.partial:
		key := s.only[s.onlyAt]
		h, _ := s.keys.Get(key)
		if s.keyState(key, h, size) {
			s.onlyAt++
		}
	default:
		s.nextKey(size)
	}
}

// eventPiece encodes a piece of the next event.
func (s *source) eventPiece(size int) {
	e := s.events[s.event].Event
	record, next := s.enc.event(e, s.keys, s.place, size)
	s.put(record)
	if s.place = next; next.key == len(e.Keys) {
		s.event, s.place = s.event+1, bookmark{}
	}
}

func (s *source) nextKey(size int) {
	for key, h := range s.keys.From(s.key) {
		if key != s.key {
			s.key = causal.Clone(key)
		}
		if s.keyState(s.key, h, size) {
			s.key += "\x00"
		}
		if s.left() >= size {
			return
		}
	}
	s.over = true
}

// keyState encodes a piece of a key, and reports whether it was the last piece.
func (s *source) keyState(key string, h history.Held, size int) bool {
	record, next := s.enc.keyState(key, h, s.spot, size)
	s.put(record)
	s.spot = next
	return next == spot{}
}

// stage reassembles a stream, separately from the state [R20].
type stage struct {
	buf     []byte
	base    bases.Base // the base of the vectors in the stream
	head    head
	begun   bool
	dec     decoder
	events  []history.DeltaEvent
	keys    history.Builder
	key     string // the key being reassembled
	held    history.KeyBuilder
	records uint64
}

// feed processes the next bytes of the stream.
func (s *stage) feed(data []byte) error {
	s.buf = append(s.buf, data...)
	at := 0
	for {
		size, n := protowire.ConsumeVarint(s.buf[at:])
		if n < 0 && len(s.buf)-at >= 10 || n >= 0 && size > maxRecord {
			return malformed("record of %d bytes", size)
		}
		if n < 0 || uint64(len(s.buf)-at-n) < size {
			break
		}
		at += n
		if err := s.record(s.buf[at : at+int(size)]); err != nil {
			return err
		}
		at += int(size)
	}
	if at > 0 { // otherwise an incomplete record stays in place
		s.buf = append(s.buf[:0], s.buf[at:]...)
	}
	return nil
}

func (s *stage) record(b []byte) (err error) {
	switch {
	case !s.begun:
		s.begun = true
		s.head, err = decodeHead(b, s.known)
		s.dec = decoder{t: replicasOf(s.head.head), about: 64}
		return err
	case s.head.state:
		return s.keyState(b)
	}
	e, err := s.dec.event(causal.Dot{}, b, s.known)
	if n := len(s.events); err == nil && n > 0 && s.events[n-1].Dot == e.Dot {
		return extend(&s.events[n-1], e)
	}
	s.events = append(s.events, e)
	return err
}

// known looks up the one base of the vectors in the stream.
func (s *stage) known(name []byte) (causal.Vector, bool) {
	return s.base.Vector(), s.base.Is(name)
}

// extend appends the next piece of the same event.
func extend(e *history.DeltaEvent, o history.DeltaEvent) error {
	for i, k := range o.Keys {
		n := len(e.Keys) - 1
		switch {
		case n >= 0 && e.Keys[n].Key == k.Key:
			extendKey(e, n, k, o.Gone[i])
		case n >= 0 && e.Keys[n].Key > k.Key:
			return malformed("order of keys of event %v", e.Dot)
		default:
			if len(e.Keys) == cap(e.Keys) { // append would grow it by a quarter
				e.Keys, e.Gone = slices.Grow(e.Keys, len(e.Keys)), slices.Grow(e.Gone, len(e.Keys))
			}
			e.Keys, e.Gone = append(e.Keys, k), append(e.Gone, o.Gone[i])
		}
	}
	return nil
}

func extendKey(e *history.DeltaEvent, i int, k history.KeyChange, gone []bool) {
	to := &e.Keys[i]
	if len(e.Gone[i])+len(gone) > 0 { // nil means that all are live
		e.Gone[i] = append(resized(e.Gone[i], len(to.Adds)), resized(gone, len(k.Adds))...)
	}
	to.Adds, to.Removes, to.Marks = append(to.Adds, k.Adds...), append(to.Removes, k.Removes...),
		append(to.Marks, k.Marks...)
	to.Clear = to.Clear || k.Clear
}

// resized returns f extended to n flags.
func resized(f []bool, n int) []bool { return append(f, make([]bool, n-len(f))...) }

func (s *stage) keyState(b []byte) error {
	key := ""
	c := cursor{rest: b}
	for c.next() {
		switch c.num {
		case 1:
			key = string(c.chunk)
			c.err = s.begin(key)
		case 2:
			var a causal.Atom
			if a, c.err = s.dec.atom(c.chunk); c.err != nil {
				break
			}
			if key == "" || !s.head.head.Covers(a.Dot) || !s.held.Add(key, a) {
				c.err = malformed("atom %v of key %q", a.Dot, key)
			}
		case 3:
			var m causal.MarkAt
			if m, c.err = decodeMark(s.dec.t, c.chunk); c.err == nil {
				s.held.Mark(m)
			}
		}
	}
	return c.err
}

// begin continues a key, or starts the next one.
func (s *stage) begin(key string) error {
	if key == s.key {
		return nil
	}
	if err := history.CheckKey(key); err != nil || key < s.key {
		return malformed("keys of state: %q after %q: %v", key, s.key, err)
	}
	s.flush()
	s.key = key
	return nil
}

func (s *stage) flush() {
	if s.key == "" {
		return
	}
	s.records++
	s.keys.Add(s.key, s.held.Held())
}

// end checks that the stream is complete. It is called after the last part.
func (s *stage) end() error {
	if len(s.buf) > 0 || !s.begun {
		return malformed("answer ends within a record")
	}
	return nil
}

// delta returns the reassembled answer as a closed delta.
func (s *stage) delta() (*history.Delta, error) {
	d := &history.Delta{Base: s.head.base, Head: s.head.head, Events: s.events}
	if !d.Closed() {
		return nil, malformed("answer is not closed: %d events from %v to %v", len(d.Events),
			d.Base, d.Head)
	}
	return d, nil
}

// state returns the sender's state. If the stream contains only the differences, the rest comes
// from the copy that was compared [R22]; changes made here since then do not matter. The
// fingerprint verifies the result.
func (s *stage) state(copied history.State) (history.State, error) {
	s.flush()
	out := s.keys.State(s.head.head)
	if s.head.partial {
		out = out.With(copied, s.head.differing)
	}
	if out.Sum != s.head.sum {
		return out, malformed("state of %d keys does not match its fingerprint", out.Keys.Len())
	}
	return out, nil
}
