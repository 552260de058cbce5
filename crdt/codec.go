package crdt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/concord-go/concord/internal/causal"
)

// Codec converts elements and map keys to canonical bytes and back: two elements have equal bytes
// if and only if they are equal. Strings, booleans, integers, floats, slices and arrays of bytes,
// and named types of these have a natural encoding and need no codec. The natural encoding
// preserves the order of the elements. NaN is rejected, since it does not equal itself, and -0 is
// stored as 0. A codec must not retain its arguments.
type Codec[E any] interface {
	Append(dst []byte, e E) ([]byte, error)
	Decode(src []byte) (E, error)
}

// elem encodes elements with the codec, or with the natural encoding if the codec is nil.
type elem[E any] struct{ codec Codec[E] }

// class returns how elements are encoded.
func (c elem[E]) class() causal.Class {
	if c.codec != nil {
		return causal.Custom
	}
	switch reflect.TypeFor[E]().Kind() {
	case reflect.String:
		return causal.String
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return causal.Signed
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return causal.Unsigned
	case reflect.Bool:
		return causal.Bool
	case reflect.Float32, reflect.Float64:
		return causal.Float
	case reflect.Slice, reflect.Array:
		if reflect.TypeFor[E]().Elem().Kind() == reflect.Uint8 {
			return causal.Bytes
		}
	}
	return causal.Custom
}

// append encodes e. Common types take a path on which neither e nor dst goes to the heap.
func (c elem[E]) append(dst []byte, e E) ([]byte, error) {
	if c.codec != nil {
		b, err := c.codec.Append(nil, e)
		return append(dst, b...), err
	}
	switch e := any(&e).(type) {
	case *string:
		return append(dst, *e...), nil
	case *int:
		return appendSigned(dst, int64(*e)), nil
	case *int64:
		return appendSigned(dst, *e), nil
	case *uint64:
		return appendUnsigned(dst, *e), nil
	}
	b, err := c.natural(nil, e)
	return append(dst, b...), err
}

// natural encodes e by the kind of its type.
func (c elem[E]) natural(dst []byte, e E) ([]byte, error) {
	v := reflect.ValueOf(&e).Elem()
	switch c.class() {
	case causal.String:
		return append(dst, v.String()...), nil
	case causal.Signed:
		return appendSigned(dst, v.Int()), nil
	case causal.Unsigned:
		return appendUnsigned(dst, v.Uint()), nil
	case causal.Bool:
		if v.Bool() {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case causal.Float:
		return appendFloat(dst, v.Float())
	case causal.Bytes:
		return append(dst, v.Bytes()...), nil
	}
	return nil, fmt.Errorf("%w: %v, for example crdt.JSON[%v]()", errNoCodec, v.Type(), v.Type())
}

// decode is the inverse of append. It rejects bytes that append does not write.
func (c elem[E]) decode(src []byte) (e E, err error) {
	if c.codec != nil {
		return c.codec.Decode(src)
	}
	if s, ok := any(&e).(*string); ok {
		*s = string(src)
		return e, nil
	}
	v := reflect.ValueOf(&e).Elem()
	switch c.class() {
	case causal.String:
		v.SetString(string(src))
		return e, nil
	case causal.Signed:
		n, err := parseSigned(src)
		if err != nil || v.OverflowInt(n) {
			return e, fmt.Errorf("%w: %v element", ErrMalformed, v.Type())
		}
		v.SetInt(n)
		return e, nil
	case causal.Unsigned:
		n, err := parseUnsigned(src)
		if err != nil || v.OverflowUint(n) {
			return e, fmt.Errorf("%w: %v element", ErrMalformed, v.Type())
		}
		v.SetUint(n)
		return e, nil
	case causal.Bool:
		if len(src) != 1 || src[0] > 1 {
			return e, fmt.Errorf("%w: %v element", ErrMalformed, v.Type())
		}
		v.SetBool(src[0] == 1)
		return e, nil
	case causal.Float:
		n, err := parseFloat(src)
		if err != nil || v.OverflowFloat(n) || v.Kind() == reflect.Float32 &&
			float64(float32(n)) != n {
			return e, fmt.Errorf("%w: %v element", ErrMalformed, v.Type())
		}
		v.SetFloat(n)
		return e, nil
	case causal.Bytes:
		if v.Kind() == reflect.Slice {
			v.SetBytes(append([]byte{}, src...))
			return e, nil
		}
		if len(src) != v.Len() {
			return e, fmt.Errorf("%w: %v element", ErrMalformed, v.Type())
		}
		reflect.Copy(v, reflect.ValueOf(src))
		return e, nil
	}
	return e, fmt.Errorf("%w: %v, for example crdt.JSON[%v]()", errNoCodec, v.Type(), v.Type())
}

// Integers are encoded so that byte order is numeric order: one byte for the sign and the length,
// followed by the shortest big-endian representation of the number.

const zeroByte = 0x80

func appendUnsigned(dst []byte, n uint64) []byte {
	size := (bits.Len64(n) + 7) / 8
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return append(append(dst, byte(zeroByte+size)), b[8-size:]...)
}

func appendSigned(dst []byte, n int64) []byte {
	if n >= 0 {
		return appendUnsigned(dst, uint64(n))
	}
	m := ^uint64(n) // 0 for -1
	size := (bits.Len64(m) + 7) / 8
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], ^m)
	return append(append(dst, byte(zeroByte-1-size)), b[8-size:]...)
}

func parseUnsigned(src []byte) (uint64, error) {
	if len(src) == 0 || src[0] < zeroByte || len(src) != 1+int(src[0]-zeroByte) || len(src) > 9 {
		return 0, ErrMalformed
	}
	var n uint64
	for _, c := range src[1:] {
		n = n<<8 | uint64(c)
	}
	if len(src) > 1 && src[1] == 0 {
		return 0, ErrMalformed
	}
	return n, nil
}

func parseSigned(src []byte) (int64, error) {
	if len(src) == 0 {
		return 0, ErrMalformed
	}
	if src[0] >= zeroByte {
		n, err := parseUnsigned(src)
		if err != nil || n > 1<<63-1 {
			return 0, ErrMalformed
		}
		return int64(n), nil
	}
	size := zeroByte - 1 - int(src[0])
	if size > 8 || len(src) != 1+size || size > 0 && src[1] == 0xff {
		return 0, ErrMalformed
	}
	m := ^uint64(0)
	for _, c := range src[1:] {
		m = m<<8 | uint64(c)
	}
	if int64(m) >= 0 {
		return 0, ErrMalformed
	}
	return int64(m), nil
}

// Floats are encoded in eight bytes so that byte order is numeric order: the sign bit is flipped,
// and for negative numbers all other bits too.

func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) {
		return dst, fmt.Errorf("%w: NaN", ErrElement)
	}
	if f == 0 {
		f = 0 // turns -0 into 0
	}
	n := math.Float64bits(f)
	if n>>63 == 1 {
		n = ^n
	} else {
		n |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, n), nil
}

func parseFloat(src []byte) (float64, error) {
	if len(src) != 8 {
		return 0, ErrMalformed
	}
	n := binary.BigEndian.Uint64(src)
	if n>>63 == 1 {
		n &^= 1 << 63
	} else {
		n = ^n
	}
	f := math.Float64frombits(n)
	if math.IsNaN(f) || f == 0 && math.Signbit(f) {
		return 0, ErrMalformed
	}
	return f, nil
}
