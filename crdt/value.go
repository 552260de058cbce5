package crdt

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// Value is the set of methods that a type needs to be replicated: a commutative, associative and
// idempotent Merge, and a canonical encoding (equal values, equal bytes). T is the type itself.
// Decode is called on the empty value of a key, which supplies codecs. It must check sizes before
// it allocates, and must not panic.
//
// The types of this package implement Value. A user-defined type that implements it is stored as
// one encoded value per concurrent write; the values are merged on read.
type Value[T any] interface {
	Merge(T) T
	AppendBinary(dst []byte) ([]byte, error)
	Decode(src []byte) (T, error)
}

// view is the representation of every value in this package: the part of an immutable store below a
// prefix. A copy is a snapshot.
type view struct {
	store  causal.Store
	prefix string        // ends before the tag of the value; "" unless the value is inside a map
	seen   causal.Vector // seen by a value used alone; a replicator keeps it for its values
	depth  uint8         // number of maps around the value
	line   uint32        // the line of descent, see open; 0 if the value was not handed out
	in     *Writer       // for a value inside a map: the writer that may change it; nil for a copy
	free   bool          // for a field: it may be changed freely, as the record gathers its changes
}

// loaded is the line of a value handed out by a replicator.
const loaded = 1

// held is implemented by pointers to the values of this package.
type held interface {
	hold() *view
	tag() causal.Tag
}

func (v *view) hold() *view { return v }

// home is this package's path. It distinguishes the types of this package from user-defined types
// that embed one of them.
var home = reflect.TypeFor[view]().PkgPath()

// heldBy returns p, a pointer to a value, as held, and whether its type belongs to this package.
func heldBy(p any) (held, bool) {
	h, ok := p.(held)
	return h, ok && reflect.TypeOf(p).Elem().PkgPath() == home
}

// open reports whether a mutator with w may continue. A value inside a map may be changed only
// within the Update that handed it out, since a change to a copy would be silently lost.
func (v *view) open(w *Writer) bool {
	if !w.ok() {
		return false
	}
	if v.prefix != "" && v.in != w && !v.free {
		w.Fail(errCopy)
		return false
	}
	if !w.hosted && v.seen.Get(w.dot.Replica) > w.dot.N {
		w.Fail(errReplica)
		return false
	}
	return true
}

// set replaces the state. In a value used alone it also adds the event of w to the seen vector; the
// parts of a user-defined type are values used alone wherever the type is stored.
func (v *view) set(w *Writer, next causal.Store) {
	if next.Same(v.store) {
		return
	}
	v.store = next
	if !w.hosted || v.line == 0 {
		v.seen = v.seen.With(w.dot)
	}
}

// base appends the fixed part of the value's paths.
func (v *view) base(dst []byte, t causal.Tag) []byte {
	return append(append(dst, v.prefix...), byte(t))
}

// alone returns the view as an independent value, cut out of its map.
func (v *view) alone() view {
	if v.prefix == "" {
		return *v
	}
	var s causal.Store
	for path, e := range v.store.Prefix(v.prefix) {
		for l := range e.All() {
			s = s.Insert(path[len(v.prefix):], l)
		}
	}
	for path, m := range v.store.Marks() {
		if rest, ok := strings.CutPrefix(path, v.prefix); ok {
			s = s.WithMark(rest, m)
		}
	}
	return view{store: s, seen: v.seen}
}

// settled reports whether the value is certainly used alone, so that its seen vector covers each of
// its atoms.
func (v *view) settled() bool { return v.line == 0 && v.prefix == "" }

// merge joins two values of one type. A value is determined by what it has seen, so if one value
// has seen everything the other has, and more, it is the join.
func (v *view) merge(o *view) view {
	switch {
	case v.settled() && v.seen.Before(o.seen):
		return o.copied()
	case o.settled() && o.seen.Before(v.seen):
		return v.copied()
	}
	a, b := v.alone(), o.alone()
	return view{store: causal.Join(a.store, a.seen, b.store, b.seen), seen: a.seen.Join(b.seen)}
}

// copied returns the value as a value used alone.
func (v *view) copied() view {
	a := v.alone()
	return view{store: a.store, seen: a.seen}
}

// check returns ErrType unless only values with the tag live under the prefix.
func (v *view) check(want causal.Tag) error { return checkType(v.store, v.prefix, want) }

func checkType(s causal.Store, prefix string, want causal.Tag) error {
	other, found := s.OtherTag(prefix, want)
	if !found {
		return nil
	}
	if s.CountPrefix(prefix+string([]byte{byte(want)})) > 0 {
		return fmt.Errorf("%w: both %v and %v", ErrType, want, other)
	}
	return fmt.Errorf("%w: %v, wanted %v", ErrType, other, want)
}

// ownTag is the tag of values of user-defined types, which are encoded whole.
var ownTag = string([]byte{byte(causal.MakeTag(causal.Own, causal.Custom))})

// checkHeld returns ErrType unless the state that h is bound to has the type of h.
func checkHeld(h held) error {
	if err := h.hold().check(h.tag()); err != nil {
		return err
	}
	if b, ok := h.(bound); ok {
		return b.checkFields()
	}
	return nil
}

// loadOwn merges the concurrent writes of a user-defined type under the prefix.
func loadOwn[T Value[T]](empty T, s causal.Store, prefix string) (T, error) {
	v := empty
	if err := joinOwn(hosted.OwnOf(empty, &v), s, prefix); err != nil {
		return empty, err
	}
	return v, nil
}

// joinOwn merges the concurrent writes of a user-defined type under the prefix into v.
func joinOwn(v hosted.Own, s causal.Store, prefix string) error {
	if err := checkType(s, prefix, causal.Tag(ownTag[0])); err != nil {
		return err
	}
	e, ok := s.Get(prefix + ownTag)
	if !ok {
		return nil
	}
	for l := range e.All() {
		if err := v.Join([]byte(l.Payload)); err != nil {
			return fmt.Errorf("value written by %v: %w", l.Dot, err)
		}
	}
	return nil
}

// putOwn writes v whole, unless s already holds it.
func putOwn(w *Writer, s causal.Store, prefix string, v interface {
	AppendBinary(dst []byte) ([]byte, error)
}) (causal.Store, error) {
	b, err := v.AppendBinary(nil)
	if err != nil {
		return s, err
	}
	if e, ok := s.Get(prefix + ownTag); ok && e.Len() == 1 && e.First().Payload == string(b) {
		return s, nil
	}
	if err := fits(len(prefix)+len(ownTag), len(b)); err != nil {
		return s, err
	}
	return s.Put(prefix+ownTag, causal.Leaf{Dot: w.dot, Payload: string(b)}), nil
}

// fits returns an error if a path or a payload exceeds the limits of a state.
func fits(path, payload int) error {
	switch {
	case path > causal.MaxPath:
		return fmt.Errorf("%w: element or key of %d bytes, limit %d", ErrTooLarge, path,
			causal.MaxPath)
	case payload > causal.MaxState:
		return fmt.Errorf("%w: element of %d bytes, limit %d", ErrTooLarge, payload,
			causal.MaxState)
	}
	return nil
}

// put is Store.Put with the limits of a state, recorded in the trail of w.
func put(w *Writer, s causal.Store, path []byte, l causal.Leaf) (causal.Store, error) {
	if err := fits(len(path), len(l.Payload)); err != nil {
		return s, err
	}
	if s.Len() >= causal.MaxPaths && !w.hosted { // a replicator has limits of its own
		if _, ok := s.Get(string(path)); !ok {
			return s, fmt.Errorf("%w: more than %d elements", ErrTooLarge, causal.MaxPaths)
		}
	}
	next := s.Put(string(path), l)
	w.trail.step(s, next, path)
	return next, nil
}

// drop is Store.Drop, recorded in the trail of w.
func drop(w *Writer, s causal.Store, path []byte) causal.Store {
	next := s.Drop(string(path))
	w.trail.step(s, next, path)
	return next
}

// together returns two views with a common prefix.
func together(a, b view) (view, view) {
	if a.prefix == b.prefix {
		return a, b
	}
	return a.alone(), b.alone()
}
