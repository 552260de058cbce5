// Package linear decodes protobuf messages in time in proportion to their size.
//
// A list of numbers may come in pieces. For each piece, the generated code allocates the whole list
// anew and copies what it had, so many small pieces take quadratic time: 747 KiB took more than
// 20 s. Encoders write a list in one piece.
package linear

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ErrPieces is returned for a message whose lists of numbers come in so many pieces that copying
// them would take much more time than the message is large.
var ErrPieces = errors.New("lists of numbers in too many pieces")

const (
	// maxTimes bounds the copied bytes as a multiple of the size of the message. Five pieces of the
	// same size are within it.
	maxTimes = 16
	// maxExtra is added for short lists.
	maxExtra = 4 << 10
	// small is a size up to which no message exceeds the bounds by much.
	small = 64
	// ofNumber is the size of the largest number, in bytes.
	ofNumber = 8
	// maxDepth bounds the nesting of messages, as proto.Unmarshal does.
	maxDepth = 10_000
)

// Unmarshal decodes a message as proto.Unmarshal does, unless Check returns an error.
func Unmarshal(b []byte, m proto.Message) error {
	if err := Check(m.ProtoReflect().Descriptor(), b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// Check returns an error that wraps ErrPieces if decoding would take quadratic time. It takes time
// in proportion to the size. What is not a message may pass; proto.Unmarshal refuses that.
func Check(md protoreflect.MessageDescriptor, b []byte) error {
	if len(b) <= small {
		return nil
	}
	s := shapeOf(md)
	if s == nil {
		return nil
	}
	w := walk{left: maxTimes*len(b) + maxExtra}
	if _, err := w.message(s, &lists{}, b, 0, 0); err != nil {
		return fmt.Errorf("%s: %w", md.FullName(), err)
	}
	return nil
}

// lists counts the bytes of the lists of a message that is being decoded. A message that occurs
// again in a field that holds one message continues the lists of the first.
type lists struct {
	bytes map[protowire.Number]int
	in    map[protowire.Number]*lists
}

// of returns the lists of the message in a field, or nil if it has none.
func (l *lists) of(n protowire.Number, p part) *lists {
	switch {
	case p.of == nil:
		return nil
	case p.repeated:
		return &lists{}
	case l.in == nil:
		l.in = map[protowire.Number]*lists{}
	}
	if l.in[n] == nil {
		l.in[n] = &lists{}
	}
	return l.in[n]
}

// walk counts down the bytes that may be copied.
type walk struct{ left int }

var errDepth = errors.New("messages nested too deeply")

// message walks over the fields of a message, or of a group to its end, and returns the rest. A
// shape that is nil is of a message without lists.
func (w *walk) message(s *shape, l *lists, b []byte, group protowire.Number,
	depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		b = b[size:]
		var p part
		if s != nil {
			p = s.fields[n]
		}
		var err error
		switch t {
		case protowire.EndGroupType:
			if n != group {
				return nil, protowire.ParseError(-1)
			}
			return b, nil
		case protowire.StartGroupType:
			b, err = w.message(p.of, l.of(n, p), b, n, depth+1)
		case protowire.BytesType:
			value, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return nil, protowire.ParseError(size)
			}
			b = b[size:]
			switch {
			case p.numbers:
				err = w.grow(l, n, len(value))
			case p.of != nil:
				_, err = w.message(p.of, l.of(n, p), value, 0, depth+1)
			}
		default:
			size := protowire.ConsumeFieldValue(n, t, b)
			if size < 0 {
				return nil, protowire.ParseError(size)
			}
			if b = b[size:]; p.numbers {
				l.add(n, 1)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// grow adds a piece of some bytes to a list.
func (w *walk) grow(l *lists, n protowire.Number, bytes int) error {
	if bytes == 0 {
		return nil // nothing is copied for it
	}
	if w.left -= ofNumber * l.add(n, bytes); w.left < 0 {
		return ErrPieces
	}
	return nil
}

// add adds to the size of a list, and returns the former one.
func (l *lists) add(n protowire.Number, bytes int) (was int) {
	if l.bytes == nil {
		l.bytes = map[protowire.Number]int{}
	}
	was = l.bytes[n]
	l.bytes[n] = was + bytes
	return was
}

// shape holds the fields of a message type that are lists of numbers, or messages with such lists
// in them. It is complete once shapeOf has returned it.
type shape struct{ fields map[protowire.Number]part }

type part struct {
	numbers  bool
	of       *shape // of its messages, or nil
	repeated bool
}

// shapes has one entry for each message type that was decoded, or is in one that was: no more than
// there are types in this process. It is nil for a type without lists of numbers.
var shapes sync.Map // protoreflect.MessageDescriptor to *shape

// Lists reports whether a message of a type may have lists of numbers.
func Lists(md protoreflect.MessageDescriptor) bool { return shapeOf(md) != nil }

func shapeOf(md protoreflect.MessageDescriptor) *shape {
	if s, ok := shapes.Load(md); ok {
		return s.(*shape)
	}
	made := map[protoreflect.MessageDescriptor]*shape{}
	s := newShape(md, made)
	for md, s := range made {
		shapes.LoadOrStore(md, s)
	}
	return s
}

// newShape returns the shape of a type, and adds it and those of the types in it to made.
func newShape(md protoreflect.MessageDescriptor,
	made map[protoreflect.MessageDescriptor]*shape) *shape {
	if s, ok := made[md]; ok {
		return s
	}
	if !reachesList(md, map[protoreflect.FullName]bool{}) {
		made[md] = nil
		return nil
	}
	s := &shape{fields: map[protowire.Number]part{}}
	made[md] = s // before its fields, which may be of the same type
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		p := part{numbers: numbers(fd), repeated: fd.IsList() || fd.IsMap()}
		if fd.Message() != nil {
			p.of = newShape(fd.Message(), made)
		}
		if p.numbers || p.of != nil {
			s.fields[fd.Number()] = p
		}
	}
	return s
}

// reachesList reports whether a message of a type, or one in it, may have lists of numbers. seen
// holds the types that have been looked at.
func reachesList(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[md.FullName()] {
		return false
	}
	seen[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if numbers(fd) || fd.Message() != nil && reachesList(fd.Message(), seen) {
			return true
		}
	}
	return false
}

// numbers reports whether a field is a list of numbers: a decoder accepts each in pieces.
func numbers(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() && fd.Message() == nil && fd.Kind() != protoreflect.StringKind &&
		fd.Kind() != protoreflect.BytesKind
}
