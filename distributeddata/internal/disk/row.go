package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/concord-go/concord/distributeddata/store"
)

// First bytes of the engine's keys, by kind.
const (
	RowPrefix  = 'r'
	markPrefix = 'm'
)

// Bounds on what an engine stores. Anything that claims to be larger is damaged.
const (
	MaxKey   = 1 + store.MaxKey
	MaxValue = header + store.MaxValue
)

const (
	version = 1
	header  = 1 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal returns what an engine stores for a value.
func Seal(key, value []byte) []byte {
	out := make([]byte, header, header+len(value))
	out[0] = version
	binary.LittleEndian.PutUint32(out[1:], checksum(key, value))
	return append(out, value...)
}

// unseal returns the value, which shares memory with sealed.
func unseal(key, sealed []byte) ([]byte, error) {
	switch {
	case len(sealed) < header:
		return nil, errors.New("too short")
	case sealed[0] != version:
		return nil, errors.New("of an unknown version")
	case binary.LittleEndian.Uint32(sealed[1:]) != checksum(key, sealed[header:]):
		return nil, errors.New("checksum does not match")
	}
	return sealed[header:], nil
}

func checksum(key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, []byte{version})
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// sumIn returns the checksum in a sealed value, whether or not it is correct.
func sumIn(sealed []byte) uint32 {
	if len(sealed) < header {
		return 0
	}
	return binary.LittleEndian.Uint32(sealed[1:])
}

// apply writes one operation, and returns the resulting change of the sum of all rows.
func apply(tx Tx, o store.Op) (change uint32, err error) {
	key := append([]byte{RowPrefix}, o.Key...)
	before, err := tx.Get(key)
	if err != nil {
		return 0, err
	}
	change = sumIn(before)
	if o.Delete {
		return change, tx.Delete(key)
	}
	sealed := Seal(key, o.Value)
	return change ^ sumIn(sealed), tx.Put(key, sealed)
}

// mark is what every transaction writes in addition to its rows.
type mark struct {
	number uint64 // of the transaction
	sum    uint32 // checksums of all rows put and not deleted since, by exclusive or
	told   uint32 // the deviation from sum that Load has reported, so that it reports it only once
}

var markKey = []byte{markPrefix}

func (m mark) put(tx Tx) error {
	raw := binary.LittleEndian.AppendUint64(nil, m.number)
	raw = binary.LittleEndian.AppendUint32(raw, m.sum)
	return tx.Put(markKey, Seal(markKey, binary.LittleEndian.AppendUint32(raw, m.told)))
}

// readMark reads the mark, which is zero if there is none. trusted is false if it is damaged.
func readMark(s Snapshot) (m mark, trusted bool, err error) {
	sealed, err := s.Get(markKey)
	if err != nil || sealed == nil {
		return mark{}, err == nil, err
	}
	value, err := unseal(markKey, sealed)
	if trusted = err == nil && len(value) == 16; trusted {
		m.number = binary.LittleEndian.Uint64(value)
		m.sum = binary.LittleEndian.Uint32(value[8:])
		m.told = binary.LittleEndian.Uint32(value[12:])
	}
	return m, trusted, nil
}

// open returns the row in a sealed value and its checksum, or an error if it is corrupt.
func open(key, sealed []byte) (r store.Row, sum uint32, err error) {
	r.Key = string(key[1:])
	if r.Value, err = unseal(key, sealed); err != nil {
		err = corrupt(r.Key, err.Error())
	}
	return r, sumIn(sealed), err
}

// corrupt returns the error for one row; an empty key stands for missing rows.
func corrupt(key, why string) error {
	if key == "" {
		return fmt.Errorf("%w: %s", store.ErrCorrupt, why)
	}
	return fmt.Errorf("%w: row %q: %s", store.ErrCorrupt, key, why)
}
