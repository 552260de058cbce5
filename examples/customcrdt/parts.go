package main

import (
	"encoding/binary"
	"fmt"

	"github.com/concord-go/concord/crdt"
)

// A value with parts is encoded as its parts, each preceded by its length. The whole is canonical
// if its parts are.

func appendPart[T crdt.Value[T]](dst []byte, part T) ([]byte, error) {
	b, err := part.AppendBinary(nil)
	if err != nil {
		return dst, err
	}
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...), nil
}

// cutPart decodes the part at the front of src with the codecs of an empty one.
func cutPart[T crdt.Value[T]](src []byte, empty T) (part T, rest []byte, err error) {
	size, n := binary.Uvarint(src)
	if n <= 0 || size > uint64(len(src)-n) || n != len(binary.AppendUvarint(nil, size)) {
		return empty, nil, fmt.Errorf("%w: part of %T", crdt.ErrMalformed, empty)
	}
	part, err = empty.Decode(src[n : n+int(size)])
	return part, src[n+int(size):], err
}

// end rejects bytes after the last part.
func end(rest []byte) error {
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", crdt.ErrMalformed, len(rest))
	}
	return nil
}
