// Package hosted connects the values of package crdt with the replicator of package
// distributeddata. Programs need none of it, so it is not part of package crdt, which sets Values
// when it is initialized.
package hosted

import "github.com/concord-go/concord/internal/causal"

// Value is crdt.Value.
type Value[T any] interface {
	Merge(T) T
	AppendBinary(dst []byte) ([]byte, error)
	Decode(src []byte) (T, error)
}

// Values are functions of package crdt. A value is a pointer to a crdt.Value, and a writer a
// *crdt.Writer. Bind, Saved and Save do nothing and return false for a user-defined type, for which
// LoadOwn and SaveOwn are.
var Values struct {
	Writer   func(d causal.Dot, stamp uint64) (writer any, end func())
	Held     func(value any) bool
	Bind     func(value any, s causal.Store, seen causal.Vector) (held bool, err error)
	Save     func(base causal.Store, value any) (_ causal.Store, held bool, err error)
	Saved    func(value any, s causal.Store, seen causal.Vector)
	LoadOwn  func(own Own, s causal.Store) error
	SaveOwn  func(writer any, s causal.Store, own Own) (causal.Store, error)
	TypeName func(value any) string
	Encoder  func(value any) any
}

// Own is a value of a user-defined type.
type Own interface {
	// Join merges the encoding of another value into this one.
	Join(encoded []byte) error
	AppendBinary(dst []byte) ([]byte, error)
}

// OwnOf returns the value at v. empty supplies the codecs.
func OwnOf[T Value[T]](empty T, v *T) Own { return own[T]{empty, v} }

type own[T Value[T]] struct {
	empty T
	v     *T
}

func (o own[T]) Join(encoded []byte) error {
	other, err := o.empty.Decode(encoded)
	if err == nil {
		*o.v = (*o.v).Merge(other)
	}
	return err
}

func (o own[T]) AppendBinary(dst []byte) ([]byte, error) { return (*o.v).AppendBinary(dst) }

// Writer returns the writer of event d with the hybrid timestamp stamp, and a function that ends
// the writer. W is *crdt.Writer.
func Writer[W any](d causal.Dot, stamp uint64) (w W, end func()) {
	writer, end := Values.Writer(d, stamp)
	return writer.(W), end
}

// Load makes *v, which is the empty value, the one stored in s. The error is crdt.ErrType or, for a
// user-defined type, the error of its Decode; then *v is undefined.
func Load[T Value[T]](v *T, s causal.Store, seen causal.Vector) error {
	if held, err := Values.Bind(v, s, seen); held {
		return err
	}
	return Values.LoadOwn(OwnOf(*v, v), s)
}

// Save returns the store that holds *v, which the update of writer made from the value that Load
// returned for base.
func Save[T Value[T]](writer any, base causal.Store, v *T) (causal.Store, error) {
	next, held, err := Values.Save(base, v)
	if held {
		return next, err
	}
	return Values.SaveOwn(writer, base, OwnOf(*v, v))
}

// Saved makes *v, after Save has put it into s, the value that Load returns from s once seen covers
// the update. It leaves a user-defined type unchanged.
func Saved[T Value[T]](v *T, s causal.Store, seen causal.Vector) { Values.Saved(v, s, seen) }

// Shareable reports whether type T belongs to package crdt, so that changing a copy of a value does
// not change the original. A user-defined type may hold a map.
func Shareable[T Value[T]]() bool { return Values.Held(new(T)) }

// TypeName returns the name by which a store identifies the type of a value, such as
// "ORSet[string]" or "ORMap[string]PNCounter". All user-defined types have one name.
func TypeName[T Value[T]](empty T) string { return Values.TypeName(&empty) }

// Encoder returns the function that appends the canonical encoding of an element of a set, or of a
// key of a map: equal ones have equal bytes. Its error is that of the codec. value is a pointer to
// a crdt.ORSet[E] or a crdt.ORMap[E, V].
func Encoder[E any](value any) func(dst []byte, e E) ([]byte, error) {
	return Values.Encoder(value).(func([]byte, E) ([]byte, error))
}
