package guard

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits on the memory of a decoded message: a multiple of its size, plus a constant. A message is
// decoded according to its type, and one of tiny elements grows to some dozen times its size.
const (
	maxTimes = 16
	maxExtra = 1 << 20
	// small is the size up to which messages are not weighed, while their batch is below maxExtra:
	// they cannot take much memory.
	small = 32 << 10
	// maxDepth bounds the nesting of messages.
	maxDepth = 1000
)

// Sizes of Go values, in bytes.
const (
	ofMessage = 40  // overhead of every generated message
	ofEntry   = 100 // entry of a map
	ofPointer = 8
	ofString  = 16
	ofSlice   = 24
)

var errCost = errors.New("would take much more memory than its size")

// checkCost returns why a message must not be decoded. In messages that are not small, it rejects
// groups, which current protobuf calls delimited fields: no one uses them by accident.
func checkCost(md protoreflect.MessageDescriptor, data []byte) error {
	w := allowance{left: maxTimes*len(data) + maxExtra}
	return w.message(md, data, 0)
}

// allowance counts down the memory that a message may still take.
type allowance struct{ left int }

func (w *allowance) take(n int) error {
	if w.left -= n; w.left < 0 {
		return errCost
	}
	return nil
}

func (w *allowance) message(md protoreflect.MessageDescriptor, data []byte, depth int) error {
	if depth > maxDepth {
		return errors.New("messages nested too deeply")
	}
	if err := w.take(sizeOf(md)); err != nil {
		return err
	}
	return fields(data, func(n protowire.Number, value []byte) error {
		fd := md.Fields().ByNumber(n)
		switch {
		case fd == nil:
			return w.take(len(value) + 8) // kept as an unknown field
		case fd.Message() != nil:
			if fd.IsMap() {
				if err := w.take(ofEntry); err != nil {
					return err
				}
			}
			if err := w.take(ofPointer); err != nil {
				return err
			}
			return w.message(fd.Message(), value, depth+1)
		case fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind:
			return w.take(ofSlice + len(value))
		}
		return w.take(8 * len(value)) // packed numbers
	})
}

// sizeOf returns the memory of an empty message.
func sizeOf(md protoreflect.MessageDescriptor) int {
	n := ofMessage
	for i := range md.Fields().Len() {
		switch fd := md.Fields().Get(i); {
		case fd.IsMap(), fd.Message() != nil && !fd.IsList():
			n += ofPointer
		case fd.IsList(), fd.Kind() == protoreflect.BytesKind:
			n += ofSlice
		case fd.Kind() == protoreflect.StringKind:
			n += ofString
		default:
			n += ofPointer
		}
	}
	return n
}
