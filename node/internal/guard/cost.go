package guard

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits on the memory of a decoded message: a multiple of its size, plus a constant. A message is
// decoded according to its type, and one of tiny elements grows to some dozen times its size.
const (
	maxTimes = 16
	maxExtra = 1 << 20
	// small is the size up to which messages are not weighed, while their batch is small too: they
	// cannot take much.
	small = 32 << 10
	// maxDepth bounds the nesting of messages.
	maxDepth = 1000
)

// Bounds of what a peer that is not a member may send at once. They keep the processor time of a
// batch below some 10 ms.
const (
	maxStrangeBatch  = maxHeld   // bytes of a batch
	maxStrangeExtra  = 256 << 10 // bytes of a batch whose small messages are not weighed
	maxStrangeFields = 50_000    // fields of the messages of a batch that are weighed
	maxStrangeOurs   = 64 << 10  // bytes of a message to this module
)

// Sizes of Go values, in bytes.
const (
	ofMessage = 40  // overhead of every generated message
	ofEntry   = 100 // entry of a map
	ofNumber  = 8   // or pointer
	ofString  = 16
	ofSlice   = 24
)

// grown is the memory of an element of a slice that grows: the slice and its last copy are in
// memory at once, and it grows by a quarter.
func grown(element int) int { return element * 9 / 4 }

var errCost = errors.New("would take much more memory than its size")

// budget is what the messages of a batch may still take beside memory in proportion to their size.
type budget struct {
	unweighed int  // bytes of a batch whose small messages are not weighed
	lists     bool // small messages with lists of numbers are weighed
	fields    int
}

func budgetOf(member bool) budget {
	if member {
		return budget{unweighed: maxExtra, fields: math.MaxInt}
	}
	return budget{unweighed: maxStrangeExtra, lists: true, fields: maxStrangeFields}
}

// check returns why a message must not be decoded. In messages that are not small, it rejects
// groups, which current protobuf calls delimited fields: no one uses them by accident.
func (b *budget) check(md protoreflect.MessageDescriptor, data []byte) error {
	a := allowance{memory: maxTimes*len(data) + maxExtra, fields: &b.fields}
	return a.message(shapeOf(md), data, 0)
}

// allowance counts down what a message may still take.
type allowance struct {
	memory int
	fields *int
}

func (a *allowance) take(n int) error {
	if a.memory -= n; a.memory < 0 {
		return errCost
	}
	return nil
}

func (a *allowance) message(s *shape, data []byte, depth int) error {
	if depth > maxDepth {
		return errors.New("messages nested too deeply")
	}
	if err := a.take(s.size); err != nil {
		return err
	}
	for len(data) > 0 {
		n, value, size, err := nextField(data)
		if err != nil {
			return err
		}
		if *a.fields--; *a.fields < 0 {
			return fmt.Errorf("more than %d fields in a batch of a process that is not listed",
				maxStrangeFields)
		}
		f, ok := s.fields[n]
		switch {
		case !ok:
			err = a.take(grown(size)) // kept as an unknown field
		case value == nil:
			err = a.take(f.number)
		default:
			err = a.take(f.fixed + f.each*len(value))
		}
		if err == nil && f.of != nil && value != nil {
			err = a.message(f.of, value, depth+1)
		}
		if err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

// shape is the memory that messages of a type take. It is complete once shapeOf has returned it.
type shape struct {
	size   int // of an empty message
	fields map[protowire.Number]part
}

// part is the memory that a field takes each time it occurs.
type part struct {
	number int    // if it is a number
	fixed  int    // if it is length-delimited
	each   int    // for each byte of it then
	of     *shape // of its messages, or nil
}

// shapes has one entry for each message type that was weighed or is in one that was: no more than
// there are types in this process.
var shapes = struct {
	sync.Mutex
	of map[protoreflect.MessageDescriptor]*shape
}{of: map[protoreflect.MessageDescriptor]*shape{}}

func shapeOf(md protoreflect.MessageDescriptor) *shape {
	shapes.Lock()
	defer shapes.Unlock()
	return shapeLocked(md)
}

func shapeLocked(md protoreflect.MessageDescriptor) *shape {
	if s, ok := shapes.of[md]; ok {
		return s
	}
	s := &shape{size: ofMessage, fields: map[protowire.Number]part{}}
	shapes.of[md] = s // before its fields, which may be of the same type
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		s.size += sizeOf(fd)
		s.fields[fd.Number()] = partOf(fd)
	}
	return s
}

func partOf(fd protoreflect.FieldDescriptor) (p part) {
	each := func(element int) int { // in a slice, or once in the message itself
		if fd.IsList() {
			return grown(element)
		}
		return 0
	}
	switch {
	case fd.IsMap():
		return part{fixed: ofEntry, of: shapeLocked(fd.Message())}
	case fd.Message() != nil:
		return part{fixed: each(ofNumber), of: shapeLocked(fd.Message())}
	case fd.Kind() == protoreflect.StringKind:
		return part{fixed: ofNumber + each(ofString), each: 1}
	case fd.Kind() == protoreflect.BytesKind:
		return part{fixed: ofNumber + each(ofSlice), each: 1}
	}
	return part{number: each(ofNumber), each: ofNumber} // a list of numbers may be packed
}

// sizeOf returns the memory of an empty field.
func sizeOf(fd protoreflect.FieldDescriptor) int {
	switch {
	case fd.IsMap(), fd.Message() != nil && !fd.IsList():
		return ofNumber
	case fd.IsList(), fd.Kind() == protoreflect.BytesKind:
		return ofSlice
	case fd.Kind() == protoreflect.StringKind:
		return ofString
	}
	return ofNumber
}
