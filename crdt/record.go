package crdt

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// Record is a struct of values that is replicated as one value. V is the struct. Its fields are
// types of this package, including records. The struct needs no methods.
//
//	type profile struct {
//		Name crdt.LWWRegister[string]
//		Tags crdt.ORSet[string]
//	}
//	var p crdt.Record[profile]
//	p.V.Name.Set(w, "Ann")
//	p.V.Tags.Add(w, "admin")
//
// Each field merges independently by its own rule, which decides which concurrent change wins. The
// record itself keeps no state, and so no garbage. A change is sent as that change, not as the
// whole record. In an [ORMap], removing the key of a record removes exactly the changes the remover
// had seen of each field.
//
// An empty record with fields that need codecs is Record[S]{V: S{...}} with empty fields in it.
// Copies are snapshots. Change fields with their mutators, and merge records whole: an update that
// assigns a field from elsewhere, or merges a field on its own, fails with [ErrInvalid].
//
// A Record costs what its fields cost, plus the name of the field for each part of it. A field is
// identified by its name: a renamed field is a new field, which starts empty, and the old one stays
// in the state. Members with different versions of the struct keep the fields that they do not
// know.
//
// Use an [ORMap] if keys are added and removed, and a type of your own for an invariant between
// fields: see [Value].
type Record[S any] struct {
	V S

	at view // the view the fields were bound to, without their changes since
}

func (r *Record[S]) hold() *view     { return &r.at }
func (r *Record[S]) tag() causal.Tag { return causal.MakeTag(causal.Record, causal.Custom) }

// bound is implemented by values made of other values, which have views of their own.
type bound interface {
	held
	// bind passes the state on to the fields.
	bind()
	// gather merges the changes of the fields into the state.
	gather() error
	// checkFields returns ErrType if a field holds a value of another type.
	checkFields() error
}

// bindTo binds a value to a view, and its fields too.
func bindTo(h held, v view) {
	*h.hold() = v
	if b, ok := h.(bound); ok {
		b.bind()
	}
}

// gathered returns the view of a value with all changes made to the value.
func gathered(h held) (*view, error) {
	if b, ok := h.(bound); ok {
		if err := b.gather(); err != nil {
			return h.hold(), err
		}
	}
	return h.hold(), nil
}

// field is one field of a record.
type field struct {
	held held
	name string
}

// fields returns the fields in the order of the struct. It returns ErrInvalid if a field is not a
// value of this package.
func (r *Record[S]) fields() ([]field, error) {
	v := reflect.ValueOf(&r.V).Elem()
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v is not a struct", errField, v.Type())
	}
	out := make([]field, 0, v.NumField())
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			return nil, fmt.Errorf("%w: %v of %v is not exported", errField, f.Name, v.Type())
		}
		h, ok := heldBy(v.Field(i).Addr().Interface())
		if !ok {
			return nil, fmt.Errorf("%w: %v of %v is a %v", errField, f.Name, v.Type(), f.Type)
		}
		if r.at.depth >= causal.MaxDepth-1 && h.tag().Kind().Holds() {
			return nil, fmt.Errorf("%w: values nested deeper than %d", ErrTooLarge,
				causal.MaxDepth)
		}
		out = append(out, field{h, f.Name})
	}
	return out, nil
}

// prefix returns the path prefix of the field.
func (r *Record[S]) prefix(f field) string {
	var buf [96]byte
	return string(causal.AppendKey(r.at.base(buf[:0], r.tag()), []byte(f.name)))
}

func (r *Record[S]) bind() {
	fields, _ := r.fields() // methods that return an error report an invalid field
	for _, f := range fields {
		v := r.at
		v.prefix, v.depth, v.free = r.prefix(f), v.depth+1, v.prefix == "" || v.free
		bindTo(f.held, v)
	}
}

func (r *Record[S]) gather() error {
	fields, err := r.fields()
	if err != nil {
		return err
	}
	base := r.at.store
	for _, f := range fields {
		f.held.hold().depth = r.at.depth + 1
		v, err := gathered(f.held)
		if err != nil {
			return err
		}
		if err := r.take(base, *v, r.prefix(f)); err != nil {
			return fmt.Errorf("%w: field %s", err, f.name)
		}
	}
	r.bind()
	return nil
}

// take applies the changes that a field made to base to the record.
func (r *Record[S]) take(base causal.Store, v view, prefix string) error {
	switch {
	case v.prefix == prefix && v.line == r.at.line:
		r.at.store = r.at.store.Take(base, v.store, prefix)
	// The field belongs to a record made with a literal.
	case v.prefix == "" && v.line == 0 && base.CountPrefix(prefix) == 0:
		for path, e := range v.store.Prefix("") {
			for l := range e.All() {
				if err := fits(len(prefix)+len(path), len(l.Payload)); err != nil {
					return err
				}
				r.at.store = r.at.store.Insert(prefix+path, l)
			}
		}
		for path, m := range v.store.Marks() {
			r.at.store = r.at.store.WithMark(prefix+path, m)
		}
	default:
		return errForeign
	}
	if v.line == 0 { // otherwise the replicator or map that handed it out knows what it has seen
		r.at.seen = r.at.seen.Join(v.seen)
	}
	return nil
}

func (r *Record[S]) checkFields() error {
	fields, err := r.fields()
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := checkHeld(f.held); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}

// Merge returns the join of two states of the record, field by field.
func (r Record[S]) Merge(o Record[S]) Record[S] {
	_ = r.gather() // AppendBinary and Update return this error
	_ = o.gather()
	bindTo(&r, r.at.merge(&o.at))
	return r
}

// AppendBinary appends the canonical encoding: equal states have equal bytes. It returns
// [ErrInvalid] if a field of the struct is not a value of this package, or if it detects that a
// field was assigned a value made elsewhere.
func (r Record[S]) AppendBinary(dst []byte) ([]byte, error) {
	if err := r.gather(); err != nil {
		return dst, err
	}
	return r.at.AppendBinary(dst)
}

// Decode returns the record encoded by AppendBinary, with the codecs of the receiver's fields.
func (r Record[S]) Decode(src []byte) (Record[S], error) {
	v, err := decodeView(src, r.tag())
	if err != nil {
		return r, err
	}
	next := r
	bindTo(&next, v)
	if err := next.checkFields(); err != nil {
		return r, err
	}
	return next, nil
}

// String returns the fields with their names, in the order of the struct.
func (r Record[S]) String() string {
	fields, _ := r.fields()
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, " %s:%v", f.name, reflect.ValueOf(f.held).Elem())
	}
	return "{" + strings.TrimPrefix(b.String(), " ") + "}"
}

// LogValue returns as size the number of elements, slots and the like in all fields.
func (r Record[S]) LogValue() slog.Value {
	_ = r.gather()
	return r.at.LogValue()
}

// MarshalJSON returns the record as an object in the order of the struct.
func (r Record[S]) MarshalJSON() ([]byte, error) { return json.Marshal(r.V) }
