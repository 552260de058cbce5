package crdt

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// Value is what a type needs to be replicated: a commutative, associative, idempotent Merge and a
// canonical encoding (equal values, equal bytes). T is the type itself. Decode is called on the empty
// value of a key, which supplies codecs; it bounds before it allocates and never panics.
//
// The types of this package are Values. An own type that implements it is kept as one encoded value
// per concurrent write and merged when it is read.
type Value[T any] interface {
	Merge(T) T
	AppendBinary(dst []byte) ([]byte, error)
	Decode(src []byte) (T, error)
}

// view is what every value of this package is: the part of an immutable store that lies under a
// prefix. Copying it is a snapshot.
type view struct {
	store  causal.Store
	prefix string        // ends where the tag of the value begins; "" unless the value lies in a map
	seen   causal.Vector // what a value used alone has seen; a replicator keeps it for the values it holds
	depth  uint8         // number of maps around the value
	line   uint32        // the line of descent: see open; 0 for a value that nobody handed out
	in     *Writer       // of a value inside a map: the writer that may change it, nil for a copy
	free   bool          // of a field: it is as free to change as the record, which takes its changes up
}

// loaded is the line of a value that a replicator handed out.
const loaded = 1

// held is implemented by pointers to the values of this package.
type held interface {
	hold() *view
	tag() causal.Tag
}

func (v *view) hold() *view { return v }

// home tells the types of this package from own types that embed one of them.
var home = reflect.TypeFor[view]().PkgPath()

// heldBy returns p, a pointer to a value, as a value of this package.
func heldBy(p any) (held, bool) {
	h, ok := p.(held)
	return h, ok && reflect.TypeOf(p).Elem().PkgPath() == home
}

// open reports whether a mutator with w may go on. The value inside a map may be changed within the
// Update that handed it out, and nowhere else: a change to a copy would be lost without a word.
func (v *view) open(w *Writer) bool {
	if !w.ok() {
		return false
	}
	if v.prefix != "" && v.in != w && !v.free {
		w.Fail(ErrCopy)
		return false
	}
	if !w.hosted && v.seen.Get(w.dot.Replica) > w.dot.N {
		w.Fail(ErrReplica)
		return false
	}
	return true
}

// set takes the next state, and notes the event of w in a value used alone, as is the part of an own
// type wherever that lives.
func (v *view) set(w *Writer, next causal.Store) {
	if next.Same(v.store) {
		return
	}
	v.store = next
	if !w.hosted || v.line == 0 {
		v.seen = v.seen.With(w.dot)
	}
}

// base appends the path before the variable part of the value's paths.
func (v *view) base(dst []byte, t causal.Tag) []byte {
	return append(append(dst, v.prefix...), byte(t))
}

// alone returns the view as a value of its own: cut out of the map it lies in.
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

// settled reports whether the value is certainly used alone, with each of its atoms noted in what it
// has seen.
func (v *view) settled() bool { return v.line == 0 && v.prefix == "" }

// merge joins two values of one type. What a value is follows from what it has seen: one that has seen
// all that the other has, and more, is the join.
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

// copied returns the value as one used alone.
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

// ownTag is the tag of values that a user's type encodes whole.
var ownTag = string([]byte{byte(causal.MakeTag(causal.Own, causal.Custom))})

// Load is for the replicator of this module: it returns the value of type T that lives in s. empty
// supplies the codecs. The error is ErrType, or that of the Decode of an own type.
func Load[T Value[T]](empty T, s causal.Store, seen causal.Vector) (T, error) {
	v := empty
	h, ok := heldBy(&v)
	if !ok {
		return loadOwn(empty, s, "")
	}
	bindTo(h, view{store: s, seen: seen, line: loaded})
	return v, checkHeld(h)
}

// Shareable is for the replicator of this module: it reports whether the values of type T are of this
// package, so that a copy of one may be changed without a change to the other. An own type may hold a map.
func Shareable[T Value[T]]() bool {
	_, ok := heldBy(new(T))
	return ok
}

// TypeName is for the replicator of this module: it returns what a store tells the type of a value by, such as
// "ORSet[string]" or "ORMap[string]PNCounter". All own types have one name.
func TypeName[T Value[T]](empty T) string {
	h, ok := heldBy(&empty)
	if !ok {
		return causal.Tag(ownTag[0]).String()
	}
	name := h.tag().String()
	if m, ok := h.(interface{ valueName() string }); ok {
		name += m.valueName()
	}
	return name
}

// checkHeld returns ErrType unless what lives where h is bound to is of its type.
func checkHeld(h held) error {
	if err := h.hold().check(h.tag()); err != nil {
		return err
	}
	if b, ok := h.(bound); ok {
		return b.checkFields()
	}
	return nil
}

// Save is for the replicator of this module: it returns the store that holds *v, which the update of w
// made from what Load returned for base.
func Save[T Value[T]](w *Writer, base causal.Store, v *T) (causal.Store, error) {
	h, ok := heldBy(v)
	if !ok {
		return saveOwn(w, base, "", *v)
	}
	at, err := gathered(h)
	if err != nil {
		return base, err
	}
	if at.line != loaded {
		return base, ErrForeign
	}
	return at.store, nil
}

// Saved is for the replicator of this module: it makes *v, which Save put into s, what Load returns from s once
// seen covers the update. An own type is what it is.
func Saved[T Value[T]](v *T, s causal.Store, seen causal.Vector) {
	if h, ok := heldBy(v); ok {
		bindTo(h, view{store: s, seen: seen, line: loaded})
	}
}

// loadOwn merges what concurrent writes of an own type left under the prefix.
func loadOwn[T Value[T]](empty T, s causal.Store, prefix string) (T, error) {
	v := empty
	if err := checkType(s, prefix, causal.Tag(ownTag[0])); err != nil {
		return v, err
	}
	e, ok := s.Get(prefix + ownTag)
	if !ok {
		return v, nil
	}
	for l := range e.All() {
		o, err := empty.Decode([]byte(l.Payload))
		if err != nil {
			return empty, fmt.Errorf("value written by %v: %w", l.Dot, err)
		}
		v = v.Merge(o)
	}
	return v, nil
}

// saveOwn writes v whole, unless it is what s holds already.
func saveOwn[T Value[T]](w *Writer, s causal.Store, prefix string, v T) (causal.Store, error) {
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

// fits returns an error for a path or a payload over the limits of a state.
func fits(path, payload int) error {
	switch {
	case path > causal.MaxPath:
		return fmt.Errorf("%w: element or key of %d bytes, limit %d", ErrTooLarge, path, causal.MaxPath)
	case payload > causal.MaxState:
		return fmt.Errorf("%w: element of %d bytes, limit %d", ErrTooLarge, payload, causal.MaxState)
	}
	return nil
}

// put is Store.Put within the limits of a state, noted in the trail of w.
func put(w *Writer, s causal.Store, path []byte, l causal.Leaf) (causal.Store, error) {
	if err := fits(len(path), len(l.Payload)); err != nil {
		return s, err
	}
	if s.Len() >= causal.MaxPaths {
		if _, ok := s.Get(string(path)); !ok {
			return s, fmt.Errorf("%w: more than %d elements", ErrTooLarge, causal.MaxPaths)
		}
	}
	next := s.Put(string(path), l)
	w.trail.step(s, next, path)
	return next, nil
}

// drop is Store.Drop, noted in the trail of w.
func drop(w *Writer, s causal.Store, path []byte) causal.Store {
	next := s.Drop(string(path))
	w.trail.step(s, next, path)
	return next
}

// together returns two views under one prefix.
func together(a, b view) (view, view) {
	if a.prefix == b.prefix {
		return a, b
	}
	return a.alone(), b.alone()
}
