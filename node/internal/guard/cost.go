package guard

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What a message may take in memory, as a multiple of its size and on top of it. A message is decoded
// by its type, and one of tiny elements becomes some dozen times its size.
const (
	maxTimes = 16
	maxExtra = 1 << 20
	// small messages are not looked at, while their batch is below maxExtra: they cannot take much.
	small = 32 << 10
	// maxDepth of messages in messages.
	maxDepth = 1000
)

// Sizes in Go, in bytes.
const (
	ofMessage = 40  // what every generated message has
	ofEntry   = 100 // of a map
	ofPointer = 8
	ofString  = 16
	ofSlice   = 24
)

var errCost = errors.New("would take much more memory than its size")

// dear returns why a message is not to be decoded. Groups, which the protobuf of today calls delimited,
// are refused in messages that are not small: nobody would use them by accident.
func dear(md protoreflect.MessageDescriptor, data []byte) error {
	w := weigher{left: maxTimes*len(data) + maxExtra}
	return w.message(md, data, 0)
}

// weigher counts down what a message may still take.
type weigher struct{ left int }

func (w *weigher) take(n int) error {
	if w.left -= n; w.left < 0 {
		return errCost
	}
	return nil
}

func (w *weigher) message(md protoreflect.MessageDescriptor, data []byte, depth int) error {
	if depth > maxDepth {
		return errors.New("messages in messages, too deep")
	}
	if err := w.take(sizeOf(md)); err != nil {
		return err
	}
	return fields(data, func(n protowire.Number, value []byte) error {
		fd := md.Fields().ByNumber(n)
		switch {
		case fd == nil:
			return w.take(len(value) + 8) // kept as it is
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
		return w.take(8 * len(value)) // numbers, packed
	})
}

// sizeOf returns what an empty message takes.
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
