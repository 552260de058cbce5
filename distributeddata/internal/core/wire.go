package core

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
	pb "github.com/concord-go/concord/proto"
)

// Limits of what is accepted from a peer. Whatever is over them refuses the whole message.
const (
	// MaxKey is the length of a key in bytes.
	MaxKey = 512
	// MaxReplicas is the number of replicas in a vector.
	MaxReplicas = 1 << 16
	// maxAnswer bounds an answer in parts, before anything is collected.
	maxAnswer = 1 << 30
)

var errMalformed = errors.New("core: malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// CheckKey returns an error that says what is wrong with a key, or nil.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("key is empty")
	case len(key) > MaxKey:
		return fmt.Errorf("key has %d bytes, over the limit of %d", len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q is not UTF-8", key)
	}
	return nil
}

// encode marshals a payload. It cannot fail: every string in our messages has been checked.
func encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("core: own message does not encode: " + err.Error())
	}
	return b
}

// decode unmarshals a payload of a peer into m.
func decode(b []byte, m proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return malformed("%v", err)
	}
	return nil
}

func vectorOut(v causal.Vector) *pb.VersionVector {
	out := &pb.VersionVector{Replicas: make([]uint64, 0, v.Len()), Numbers: make([]uint64, 0, v.Len())}
	for d := range v.All() {
		out.Replicas = append(out.Replicas, uint64(d.Replica))
		out.Numbers = append(out.Numbers, d.N)
	}
	return out
}

func vectorIn(v *pb.VersionVector) (causal.Vector, error) {
	ids, numbers := v.GetReplicas(), v.GetNumbers()
	if len(ids) != len(numbers) || len(ids) > MaxReplicas {
		return causal.Vector{}, malformed("vector of %d replicas and %d numbers", len(ids), len(numbers))
	}
	dots := make([]causal.Dot, len(ids))
	for i := range ids {
		dots[i] = causal.Dot{Replica: causal.Replica(ids[i]), N: numbers[i]}
		if ids[i] == 0 || numbers[i] == 0 || i > 0 && ids[i-1] >= ids[i] {
			return causal.Vector{}, malformed("vector out of order at %d", i)
		}
	}
	return causal.MakeVector(dots...), nil
}

// table interns replica ids for one message.
type table struct {
	ids   []uint64
	index map[causal.Replica]uint32
}

func newTable() *table { return &table{index: map[causal.Replica]uint32{}} }

func (t *table) put(r causal.Replica) uint32 {
	i, ok := t.index[r]
	if !ok {
		i = uint32(len(t.ids))
		t.index[r] = i
		t.ids = append(t.ids, uint64(r))
	}
	return i
}

func (t *table) get(i uint32) (causal.Replica, error) {
	if int64(i) >= int64(len(t.ids)) || t.ids[i] == 0 {
		return 0, malformed("replica index %d of %d", i, len(t.ids))
	}
	return causal.Replica(t.ids[i]), nil
}

func (t *table) dot(i uint32, n uint64) (causal.Dot, error) {
	r, err := t.get(i)
	if err == nil && n == 0 {
		err = malformed("event number 0")
	}
	return causal.Dot{Replica: r, N: n}, err
}

func encodeDelta(d *delta) []byte {
	t := newTable()
	out := &pb.Delta{Base: vectorOut(d.base), Head: vectorOut(d.head), Ack: d.ack, Events: make([]*pb.Event, 0, len(d.events))}
	for _, e := range d.events {
		out.Events = append(out.Events, eventOut(t, e))
	}
	out.Replicas = t.ids
	return encode(out)
}

func eventOut(t *table, e deltaEvent) *pb.Event {
	out := &pb.Event{Origin: t.put(e.dot.Replica), N: e.dot.N, Keys: make([]*pb.KeyChange, 0, len(e.keys))}
	if e.deps.Len() > 0 {
		out.Deps = vectorOut(e.deps)
	}
	for i, k := range e.keys {
		kc := &pb.KeyChange{Key: k.key, Clear: k.Clear, Marks: marksOut(t, k.Marks)}
		for j, a := range k.Adds {
			kc.Adds = append(kc.Adds, &pb.Add{Path: []byte(a.Path), Payload: []byte(a.Payload), Gone: e.gone[i] != nil && e.gone[i][j]})
		}
		for _, a := range k.Removes {
			kc.Removes = append(kc.Removes, &pb.Remove{Path: []byte(a.Path), Origin: t.put(a.Replica), N: a.N})
		}
		out.Keys = append(out.Keys, kc)
	}
	return out
}

func marksOut(t *table, marks []causal.MarkAt) (out []*pb.ResetMark) {
	for _, m := range marks {
		out = append(out, &pb.ResetMark{Path: []byte(m.Path), N: m.N, Plus: m.Plus, Minus: m.Minus, ByOrigin: t.put(m.By.Replica), ByN: m.By.N})
	}
	return out
}

func decodeDelta(b []byte) (*delta, error) {
	var in pb.Delta
	if err := decode(b, &in); err != nil {
		return nil, err
	}
	base, err := vectorIn(in.Base)
	if err != nil {
		return nil, err
	}
	head, err := vectorIn(in.Head)
	if err != nil {
		return nil, err
	}
	d := &delta{base: base, head: head, ack: in.Ack, events: make([]deltaEvent, 0, len(in.Events))}
	t := &table{ids: in.Replicas}
	for _, e := range in.Events {
		ev, err := eventIn(t, e)
		if err != nil {
			return nil, err
		}
		d.events = append(d.events, ev)
	}
	if !base.Leq(head) || !d.closed() {
		return nil, malformed("delta is not closed: %d events from %v to %v", len(d.events), base, head)
	}
	return d, nil
}

func eventIn(t *table, in *pb.Event) (e deltaEvent, err error) {
	if e.dot, err = t.dot(in.Origin, in.N); err != nil {
		return e, err
	}
	if e.deps, err = vectorIn(in.Deps); err != nil {
		return e, err
	}
	e.gone = make([][]bool, len(in.Keys))
	for i, k := range in.Keys {
		kc := keyChange{key: k.Key}
		if err := CheckKey(k.Key); err != nil || i > 0 && in.Keys[i-1].Key >= k.Key {
			return e, malformed("keys of event %v: %q: %v", e.dot, k.Key, err)
		}
		kc.Clear = k.Clear
		for j, a := range k.Adds {
			if err := checkPath(a.Path); err != nil {
				return e, err
			}
			if a.Gone && e.gone[i] == nil {
				e.gone[i] = make([]bool, len(k.Adds))
			}
			if a.Gone {
				e.gone[i][j] = true
			}
			kc.Adds = append(kc.Adds, causal.Atom{Path: string(a.Path), Leaf: causal.Leaf{Dot: e.dot, Payload: string(a.Payload)}})
		}
		for _, a := range k.Removes {
			dot, err := t.dot(a.Origin, a.N)
			if err = errors.Join(err, checkPath(a.Path)); err != nil {
				return e, err
			}
			kc.Removes = append(kc.Removes, causal.Atom{Path: string(a.Path), Leaf: causal.Leaf{Dot: dot}})
		}
		if kc.Marks, err = marksIn(t, k.Marks); err != nil {
			return e, err
		}
		e.keys = append(e.keys, kc)
	}
	return e, nil
}

func checkPath(p []byte) error {
	if len(p) == 0 || len(p) > causal.MaxPath {
		return malformed("path of %d bytes", len(p))
	}
	return nil
}

func marksIn(t *table, in []*pb.ResetMark) (out []causal.MarkAt, err error) {
	for _, m := range in {
		by, err := t.dot(m.ByOrigin, m.ByN)
		if err = errors.Join(err, checkPath(m.Path)); err != nil {
			return nil, err
		}
		out = append(out, causal.MarkAt{Path: string(m.Path), Mark: causal.Mark{N: m.N, Plus: m.Plus, Minus: m.Minus, By: by}})
	}
	return out, nil
}

// snapshot is a whole state of one instant.
type snapshot struct {
	seen causal.Vector
	keys pmap.Map[causal.Store]
}

func encodeSnapshot(s snapshot) []byte {
	t := newTable()
	out := &pb.Snapshot{Seen: vectorOut(s.seen)}
	for key, store := range s.keys.All() {
		ks := &pb.KeyState{Key: key}
		for path, e := range store.Prefix("") {
			for l := range e.All() {
				ks.Atoms = append(ks.Atoms, &pb.LiveAtom{Path: []byte(path), Origin: t.put(l.Replica), N: l.N, Payload: []byte(l.Payload)})
			}
		}
		for path, m := range store.Marks() {
			ks.Marks = append(ks.Marks, marksOut(t, []causal.MarkAt{{Path: path, Mark: m}})...)
		}
		out.Keys = append(out.Keys, ks)
	}
	out.Replicas = t.ids
	return encode(out)
}

func decodeSnapshot(b []byte) (s snapshot, err error) {
	var in pb.Snapshot
	if err := decode(b, &in); err != nil {
		return s, err
	}
	if s.seen, err = vectorIn(in.Seen); err != nil {
		return s, err
	}
	t := &table{ids: in.Replicas}
	var keys pmap.Builder[causal.Store]
	for i, k := range in.Keys {
		if err := CheckKey(k.Key); err != nil || i > 0 && in.Keys[i-1].Key >= k.Key {
			return s, malformed("keys of snapshot: %q: %v", k.Key, err)
		}
		store, err := storeIn(t, k, s.seen)
		if err != nil {
			return s, err
		}
		keys.Add([]byte(k.Key), store)
	}
	s.keys = keys.Map()
	return s, nil
}

func storeIn(t *table, in *pb.KeyState, seen causal.Vector) (s causal.Store, err error) {
	for _, a := range in.Atoms {
		dot, err := t.dot(a.Origin, a.N)
		if err = errors.Join(err, checkPath(a.Path)); err != nil {
			return s, err
		}
		if !seen.Covers(dot) {
			return s, malformed("atom %v of key %q beyond what the snapshot has seen", dot, in.Key)
		}
		s = s.Insert(string(a.Path), causal.Leaf{Dot: dot, Payload: string(a.Payload)})
	}
	marks, err := marksIn(t, in.Marks)
	for _, m := range marks {
		s = s.WithMark(m.Path, m.Mark)
	}
	return s, err
}
