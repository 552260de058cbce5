package causal

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// reader reads one message field by field in the order of the numbers, in exactly the form in which
// this package writes it: shortest numbers, no zeros, no unknown fields. After the first deviation
// bad is set and every later read returns nothing.
type reader struct {
	b   []byte
	bad bool
}

// field skips the tag of the field if it comes next.
func (r *reader) field(num protowire.Number, typ protowire.Type) bool {
	if len(r.b) == 0 || r.b[0] != byte(num)<<3|byte(typ) { // b is empty after an error
		return false
	}
	r.b = r.b[1:]
	return true
}

func (r *reader) varint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	return r.longVarint()
}

// longVarint is the multi-byte case of varint, separate so that varint is inlined.
func (r *reader) longVarint() uint64 {
	v, n := protowire.ConsumeVarint(r.b)
	if n < 0 || n != protowire.SizeVarint(v) {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) fixed64() uint64 {
	v, n := protowire.ConsumeFixed64(r.b)
	if n < 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// number reads an optional number; an absent field is zero.
func (r *reader) number(num protowire.Number) uint64 {
	if !r.field(num, protowire.VarintType) {
		return 0
	}
	v := r.varint()
	if v == 0 {
		r.fail()
	}
	return v
}

// chunk reads the length and content of a field; the result aliases the input.
func (r *reader) chunk() []byte {
	size := r.varint()
	if size > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:size]
	r.b = r.b[size:]
	return b
}

// bytes reads optional bytes; an absent field is empty.
func (r *reader) bytes(num protowire.Number) []byte {
	if !r.field(num, protowire.BytesType) {
		return nil
	}
	b := r.chunk()
	if len(b) == 0 {
		r.fail()
	}
	return b
}

// message returns a reader of the next message in a repeated field.
func (r *reader) message(num protowire.Number) (reader, bool) {
	if !r.field(num, protowire.BytesType) {
		return reader{}, false
	}
	return reader{b: r.chunk()}, !r.bad
}

func (r *reader) fail() { r.b, r.bad = nil, true }

// done returns an error unless the message was read completely and without errors.
func (r *reader) done(what string) error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	return nil
}

// version reads the first field and rejects other versions.
func (r *reader) version() error {
	switch v := r.number(1); {
	case r.bad || v == 0:
		return fmt.Errorf("%w: no version", ErrMalformed)
	case v != wireVersion:
		return fmt.Errorf("%w: %d", ErrVersion, v)
	}
	return nil
}
