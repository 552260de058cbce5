package crdt

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// JSON returns a codec that encodes elements with encoding/json, which sorts the keys of maps. It
// refuses elements whose encoding does not come out the same after decoding it, since such an element
// could be added but never found again. What encoding/json leaves out, such as unexported fields,
// does not tell elements apart.
func JSON[E any]() Codec[E] { return jsonCodec[E]{} }

type jsonCodec[E any] struct{}

func (jsonCodec[E]) Append(dst []byte, e E) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrElement, err)
	}
	if _, err := (jsonCodec[E]{}).Decode(b); err != nil {
		return dst, fmt.Errorf("%w: %T does not survive JSON", ErrElement, e)
	}
	return append(dst, b...), nil
}

func (jsonCodec[E]) Decode(src []byte) (e E, err error) {
	if err := json.Unmarshal(src, &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if b, err := json.Marshal(e); err != nil || !bytes.Equal(b, src) {
		return e, fmt.Errorf("%w: JSON of %T in another form", ErrMalformed, e)
	}
	return e, nil
}

// Proto returns a codec for protobuf messages, which are told apart by their deterministic encoding.
// That encoding is stable for one version of the schema and of the protobuf library, not across all:
// take an own codec where members with different versions must agree on elements with maps or unknown
// fields. A nil message is no element.
//
// Process ids of Proto.Actor are such messages: NewORSet(Proto[*actor.PID]()) is a set of them. One is
// told from another by address, id and request id; that of a local actor without remoting has an address
// that means nothing elsewhere.
func Proto[M proto.Message]() Codec[M] { return protoCodec[M]{} }

type protoCodec[M proto.Message] struct{}

func (protoCodec[M]) Append(dst []byte, m M) ([]byte, error) {
	if any(m) == nil || !m.ProtoReflect().IsValid() {
		return dst, fmt.Errorf("%w: nil message", ErrElement)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrElement, err)
	}
	return out, nil
}

func (protoCodec[M]) Decode(src []byte) (M, error) {
	var zero M
	if any(zero) == nil {
		return zero, fmt.Errorf("%w: %T is no type of message", ErrNoCodec, &zero)
	}
	m := zero.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(src, m); err != nil {
		return zero, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil || !bytes.Equal(b, src) {
		return zero, fmt.Errorf("%w: message in another form", ErrMalformed)
	}
	return m, nil
}
