package causal

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A path is the location of an atom inside a value. Its first byte is the [Tag] of the value's
// type. With the tag, a node without the Go type can still merge, repair and count the value, and
// two types under one key can be told apart. The rest depends on the type:
//
//	counter          tag, replica (8 bytes, big endian): the slot of one replica
//	bounded counter  tag, replica, replica: what the first gave the second, or counted itself
//	set              tag, element
//	register, flag   tag
//	map              tag, escaped key, 0x00 0x01, path of the child
//	record           tag, escaped name of the field, 0x00 0x01, path of the field
//
// Escaping preserves the order of the keys and makes the end of a key unambiguous.

// Tag is the type of a value: its kind and the class of its elements or keys.
type Tag byte

// Kind is the kind of a value. The numbers are used on the wire and on disks, and are never reused.
type Kind byte

// The kinds of values.
const (
	GCounter    Kind = 1
	PNCounter   Kind = 2
	GSet        Kind = 3
	ORSet       Kind = 4
	RWSet       Kind = 5
	LWWRegister Kind = 6
	MVRegister  Kind = 7
	EWFlag      Kind = 8
	DWFlag      Kind = 9
	ORMap       Kind = 10
	Record      Kind = 11 // of fields by name, each one a value
	Own         Kind = 12 // a user-defined type, encoded whole
	Bounded     Kind = 13
	Extreme     Kind = 14 // the largest element, or with Min in the class the smallest
	Tombstone   Kind = 15 // an entry that was deleted permanently
)

// Holds reports whether values of the kind contain others, each after an escaped key.
func (k Kind) Holds() bool { return k == ORMap || k == Record }

// single reports whether values of the kind live at one path.
func (k Kind) single() bool {
	switch k {
	case LWWRegister, MVRegister, EWFlag, DWFlag, Extreme, Own:
		return true
	}
	return false
}

// Gone is the payload of an atom that records a removal, in a remove-wins set or a disable-wins
// flag. An atom without payload records an add. The element is present while no atom records a
// removal.
const Gone = "\x01"

// Class is the encoding of elements, keys or register values.
type Class byte

// The classes of elements. Custom is a user-defined codec.
const (
	Custom   Class = 0
	String   Class = 1
	Signed   Class = 2
	Unsigned Class = 3
	Bool     Class = 4
	Bytes    Class = 5
	Float    Class = 6

	Min Class = 8 // added to the class of an Extreme

	lastUse Class = 15 // of Tombstone: the time of the entry's last use
)

// UsePath is the path of the atoms that record the last use of an entry. They belong to the entry
// and not to its value. UsePath sorts after every path of a value.
var UsePath = string([]byte{byte(MakeTag(Tombstone, lastUse))})

// MaxUse bounds the payload of such an atom.
const MaxUse = 64

// MakeTag joins a kind and a class.
func MakeTag(k Kind, c Class) Tag { return Tag(byte(k)<<4 | byte(c)) }

// Kind returns the kind of values with the tag.
func (t Tag) Kind() Kind { return Kind(t >> 4) }

// Class returns the class of the elements of values with the tag.
func (t Tag) Class() Class { return Class(t & 15) }

func (t Tag) String() string {
	kind, ok := kindNames[t.Kind()]
	if t == Tag(UsePath[0]) {
		return "last use"
	}
	if !ok {
		kind = fmt.Sprintf("kind %d", t.Kind())
	}
	c := t.Class()
	if t.Kind() == Extreme && c >= Min {
		kind, c = "MinRegister", c-Min
	}
	class, ok := classNames[c]
	switch {
	case slices.Contains(plain, t.Kind()):
		return kind
	case !ok:
		class = fmt.Sprintf("class %d", c)
	}
	return kind + "[" + class + "]"
}

// plain are the kinds without elements.
var plain = []Kind{GCounter, PNCounter, EWFlag, DWFlag, Bounded, Record, Tombstone}

var kindNames = map[Kind]string{
	GCounter: "GCounter", PNCounter: "PNCounter", GSet: "GSet", ORSet: "ORSet", RWSet: "RWSet",
	LWWRegister: "LWWRegister", MVRegister: "MVRegister", EWFlag: "EWFlag", DWFlag: "DWFlag",
	ORMap: "ORMap", Record: "Record", Own: "own", Bounded: "BoundedCounter", Extreme: "MaxRegister",
	Tombstone: "tombstone",
}

var classNames = map[Class]string{
	Custom: "custom", String: "string", Signed: "int", Unsigned: "uint", Bool: "bool",
	Bytes: "bytes",
	Float: "float",
}

// SlotPath returns the path of r's slot of the counter whose paths begin with prefix, which
// includes the tag.
func SlotPath(prefix string, r Replica) string {
	b := make([]byte, 0, len(prefix)+8)
	return string(binary.BigEndian.AppendUint64(append(b, prefix...), uint64(r)))
}

// AppendKey appends a map key in its escaped form, with its terminator.
func AppendKey(dst []byte, key []byte) []byte {
	for _, c := range key {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// CutKey splits the escaped key off the start of a path.
func CutKey(path string) (key, rest string, ok bool) {
	var b strings.Builder
	from := 0
	for {
		i := strings.IndexByte(path[from:], 0)
		if i < 0 || from+i+1 >= len(path) {
			return "", "", false
		}
		i += from
		switch path[i+1] {
		case 1:
			if b.Len() == 0 {
				return path[:i], path[i+2:], true
			}
			b.WriteString(path[from:i])
			return b.String(), path[i+2:], true
		case 0xff:
			b.WriteString(path[from : i+1])
			from = i + 2
		default:
			return "", "", false
		}
	}
}

// SlotOwner returns the replica that owns the counter slot at path, or false if path is not a
// counter slot.
func SlotOwner(path string) (Replica, bool) {
	slot := counterSlot(path)
	if slot == "" {
		return 0, false
	}
	return Replica(binary.BigEndian.Uint64([]byte(slot[:8]))), true
}

// counterSlot returns the end of the path of a counter slot, which names the slot, or "" if path is
// not a counter slot.
func counterSlot(path string) string {
	for path != "" && Tag(path[0]).Kind().Holds() {
		end := keyEnd(path, 1)
		if end < 0 {
			return ""
		}
		path = path[end:]
	}
	if path == "" {
		return ""
	}
	switch k := Tag(path[0]).Kind(); {
	case len(path) == 9 && (k == GCounter || k == PNCounter), len(path) == 17 && k == Bounded:
		return path[1:]
	}
	return ""
}

// OtherTag searches below a prefix, which ends before a tag, for a value of a type other than want,
// and returns its tag.
func (s Store) OtherTag(prefix string, want Tag) (other Tag, found bool) {
	first, last, ok := s.atoms.Bounds(prefix)
	if !ok {
		return 0, false
	}
	for _, path := range [...]string{first, last} { // tags are in order
		if len(path) == len(prefix) {
			return 0, true
		}
		if t := Tag(path[len(prefix)]); t != want {
			return t, true
		}
	}
	return 0, false
}
