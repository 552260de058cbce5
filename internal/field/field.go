// Package field writes the fields of protocol buffer messages one by one, for messages that carry
// data: they are encoded directly, without first building them in memory. It serves values
// (internal/causal) and the messages between replicas (distributeddata/internal/core).
//
// A field with its zero value is omitted, as in generated code. Field numbers are at most 15, so
// that a tag is one byte.
package field

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

func tag(b []byte, num protowire.Number, typ protowire.Type) []byte {
	return append(b, byte(num)<<3|byte(typ))
}

// Number appends a varint.
func Number(b []byte, num protowire.Number, v uint64) []byte {
	switch {
	case v == 0:
		return b
	case v < 0x80:
		return append(b, byte(num)<<3, byte(v))
	}
	return protowire.AppendVarint(tag(b, num, protowire.VarintType), v)
}

// Flag appends a bool.
func Flag(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return Number(b, num, 1)
}

// Fixed appends an eight-byte number.
func Fixed(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(tag(b, num, protowire.Fixed64Type), v)
}

// Text appends a string or bytes.
func Text[T string | []byte](b []byte, num protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	return Message(b, num, v)
}

// Message appends an encoded message, which may be empty.
func Message[T string | []byte](b []byte, num protowire.Number, m T) []byte {
	return append(protowire.AppendVarint(tag(b, num, protowire.BytesType), uint64(len(m))), m...)
}

// Fixeds appends packed eight-byte numbers.
func Fixeds[T ~uint64](b []byte, num protowire.Number, vs []T) []byte {
	if len(vs) == 0 {
		return b
	}
	b = protowire.AppendVarint(tag(b, num, protowire.BytesType), uint64(8*len(vs)))
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// Fixed32s appends packed four-byte numbers.
func Fixed32s[T ~uint32](b []byte, num protowire.Number, vs []T) []byte {
	if len(vs) == 0 {
		return b
	}
	b = protowire.AppendVarint(tag(b, num, protowire.BytesType), uint64(4*len(vs)))
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// Numbers appends packed varints.
func Numbers(b []byte, num protowire.Number, vs []uint64) []byte {
	if len(vs) == 0 {
		return b
	}
	size := 0
	for _, v := range vs {
		size += protowire.SizeVarint(v)
	}
	b = protowire.AppendVarint(tag(b, num, protowire.BytesType), uint64(size))
	for _, v := range vs {
		b = protowire.AppendVarint(b, v)
	}
	return b
}

// Begin starts a message: append its contents next, and then call End.
func Begin(b []byte, num protowire.Number) (_ []byte, at int) {
	b = append(tag(b, num, protowire.BytesType), 0)
	return b, len(b)
}

// End writes the length of the message that starts at at. Most messages fit the one byte reserved
// for the length.
func End(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	var size [binary.MaxVarintLen64]byte
	return slices.Replace(b, at-1, at, protowire.AppendVarint(size[:0], uint64(n))...)
}
