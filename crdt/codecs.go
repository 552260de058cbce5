package crdt

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/linear"
)

// JSON returns a codec that uses encoding/json, which sorts the keys of maps. The codec rejects an
// element whose encoding changes when it is decoded and encoded again, since such an element could
// be added but never found. Fields that encoding/json omits, such as unexported ones, do not
// distinguish elements.
func JSON[E any]() Codec[E] { return jsonCodec[E]{} }

type jsonCodec[E any] struct{}

func (jsonCodec[E]) Append(dst []byte, e E) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrElement, err)
	}
	if _, err := (jsonCodec[E]{}).Decode(b); err != nil {
		return dst, fmt.Errorf("%w: %T changes in a JSON round trip", ErrElement, e)
	}
	return append(dst, b...), nil
}

func (jsonCodec[E]) Decode(src []byte) (e E, err error) {
	if err := json.Unmarshal(src, &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if b, err := json.Marshal(e); err != nil || !bytes.Equal(b, src) {
		return e, fmt.Errorf("%w: JSON of %T is not canonical", ErrMalformed, e)
	}
	return e, nil
}

// Proto returns a codec for protobuf messages, which it compares by their deterministic encoding.
// That encoding is stable for one version of the schema and of the protobuf library, but not across
// versions. Write your own codec if members with different versions must agree on elements that
// have maps or unknown fields. The codec rejects a nil message.
//
// Proto.Actor process ids are such messages: NewORSet(Proto[*actor.PID]()) is a set of them. Two
// PIDs are equal if address, id and request id are equal. The PID of a local actor without remoting
// has an address that means nothing on other members.
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
		return zero, fmt.Errorf("%w: %T is not a message type", errNoCodec, &zero)
	}
	m := zero.ProtoReflect().New().Interface().(M)
	if err := linear.Unmarshal(src, m); err != nil {
		return zero, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil ||
		!bytes.Equal(b, src) {
		return zero, fmt.Errorf("%w: encoding of %T is not canonical", ErrMalformed, zero)
	}
	return m, nil
}
