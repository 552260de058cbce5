package crdt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// String and JSON show the contents of a value, in order. Logs show only the size, since contents
// may be private and are unbounded.

// String returns the count.
func (c GCounter) String() string { return strconv.FormatUint(c.Value(), 10) }

// String returns the count.
func (c PNCounter) String() string { return strconv.FormatInt(c.Value(), 10) }

// String returns the elements in order.
func (s ORSet[E]) String() string { return text(s.All()) }

// String returns the element, or "empty".
func (r LWWRegister[E]) String() string { return textOf(r.Value()) }

// String returns the keys with their values, in order of the keys.
func (m ORMap[K, V]) String() string {
	var b strings.Builder
	for k, v := range m.All() {
		fmt.Fprintf(&b, " %v:%v", k, v)
	}
	return "{" + strings.TrimPrefix(b.String(), " ") + "}"
}

// String returns the keys with their elements, in order of the keys.
func (m LWWMap[K, E]) String() string { return m.m.String() }

// LogValue returns the size.
func (m LWWMap[K, E]) LogValue() slog.Value { return m.m.LogValue() }

// LogValue returns the size: the number of elements, slots and the like.
func (v view) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("size", v.store.CountPrefix(v.prefix)))
}

// MarshalJSON returns the count as a number.
func (c GCounter) MarshalJSON() ([]byte, error) { return json.Marshal(c.Value()) }

// MarshalJSON returns the count as a number.
func (c PNCounter) MarshalJSON() ([]byte, error) { return json.Marshal(c.Value()) }

// MarshalJSON returns the elements as an array.
func (s ORSet[E]) MarshalJSON() ([]byte, error) { return jsonArray(s.All()) }

// MarshalJSON returns the element, or null.
func (r LWWRegister[E]) MarshalJSON() ([]byte, error) { return jsonOf(r.Value()) }

// MarshalJSON returns the map as an object in the order of the keys. Keys that are not strings in
// JSON are quoted.
func (m ORMap[K, V]) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for k, v := range m.All() {
		kb, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(kb, []byte{'"'}) {
			if kb, err = json.Marshal(string(kb)); err != nil {
				return nil, err
			}
		}
		vb, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(append(append(separated(out), kb...), ':'), vb...)
	}
	return append(out, '}'), nil
}

// MarshalJSON returns the map as an object in the order of the keys.
func (m LWWMap[K, E]) MarshalJSON() ([]byte, error) { return m.m.MarshalJSON() }

// separated appends a comma unless b has only its opening bracket.
func separated(b []byte) []byte {
	if len(b) > 1 {
		return append(b, ',')
	}
	return b
}
