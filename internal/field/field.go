// Package field writes the fields of protocol buffer messages one by one, for the messages that carry data: they
// are encoded once, without being put together in memory first. All of Concord's encodings by hand are written with
// it: values (internal/causal) and what replicas tell each other (distributeddata/internal/core).
//
// A field with its zero value is left out, as generated code does. Field numbers are at most 15, so that
// a tag is one byte.
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

// Fixed appends a number of eight bytes.
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

// Fixeds appends numbers of eight bytes, packed.
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

// Fixed32s appends numbers of four bytes, packed.
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

// Numbers appends varints, packed.
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

// Begin appends the beginning of a message, which is what is appended next; End ends it.
func Begin(b []byte, num protowire.Number) (_ []byte, at int) {
	b = append(tag(b, num, protowire.BytesType), 0)
	return b, len(b)
}

// End writes the length of the message that began at at. Most are short enough for the one byte there is.
func End(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	var size [binary.MaxVarintLen64]byte
	return slices.Replace(b, at-1, at, protowire.AppendVarint(size[:0], uint64(n))...)
}
