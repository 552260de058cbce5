package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// Errors of this package. Test for them with errors.Is.
var (
	// ErrNoCodec refuses an element of a type that has no natural encoding; give the value a codec.
	ErrNoCodec = errors.New("crdt: element type needs a codec")
	// ErrMalformed is returned by every Decode for bytes that no value encodes to. The receiver is
	// unchanged.
	ErrMalformed = errors.New("crdt: malformed encoding")
	// ErrType says that the state holds a value of another type than the one asked for, or of two
	// types, created concurrently under one name. Nothing was changed.
	ErrType = errors.New("crdt: state holds another type")
	// ErrTooLarge refuses an element, a key or a value over the limit.
	ErrTooLarge = errors.New("crdt: over the size limit")
	// ErrForeign refuses an update that put a value from elsewhere in the place of the one it was
	// given: change it with its mutators.
	ErrForeign = errors.New("crdt: value replaced by one from elsewhere")
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
}

// held is implemented by pointers to the values of this package.
type held interface {
	hold() *view
	tag() causal.Tag
}

func (v *view) hold() *view { return v }

// saw notes the event of w in a value used alone.
func (v *view) saw(w *Writer) {
	if !w.hosted {
		v.seen = v.seen.With(w.dot)
	}
}

// alone returns the view as a value of its own: cut out of the map it lies in.
func (v view) alone() view {
	if v.prefix == "" {
		return v
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

// merge joins two values of one type.
func (v view) merge(o view) view {
	v, o = v.alone(), o.alone()
	return view{store: causal.Join(v.store, v.seen, o.store, o.seen), seen: v.seen.Join(o.seen)}
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
	h, ok := any(&v).(held)
	if !ok {
		return loadOwn(empty, s)
	}
	*h.hold() = view{store: s, seen: seen}
	return v, h.hold().check(h.tag())
}

// Save is for the replicator of this module: it returns the store that holds v, which the update of w
// made from what Load returned for base.
func Save[T Value[T]](w *Writer, base causal.Store, v T) (causal.Store, error) {
	h, ok := any(&v).(held)
	if !ok {
		return saveOwn(w, base, v)
	}
	if h.hold().prefix != "" {
		return base, ErrForeign
	}
	return h.hold().store, nil
}

// loadOwn merges what concurrent writes of an own type left.
func loadOwn[T Value[T]](empty T, s causal.Store) (T, error) {
	v := empty
	if s.Empty() {
		return v, nil
	}
	if err := checkType(s, "", causal.Tag(ownTag[0])); err != nil {
		return v, err
	}
	e, _ := s.Get(ownTag)
	for l := range e.All() {
		o, err := empty.Decode([]byte(l.Payload))
		if err != nil {
			return empty, fmt.Errorf("value written by %v: %w", l.Dot, err)
		}
		v = v.Merge(o)
	}
	return v, nil
}

// saveOwn writes v whole, unless it is what base holds already.
func saveOwn[T Value[T]](w *Writer, base causal.Store, v T) (causal.Store, error) {
	b, err := v.AppendBinary(nil)
	if err != nil {
		return base, err
	}
	if e, ok := base.Get(ownTag); ok && e.Len() == 1 && bytes.Equal([]byte(e.First().Payload), b) {
		return base, nil
	}
	return base.Put(ownTag, causal.Leaf{Dot: w.dot, Payload: string(b)}), nil
}
