package badger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"

	"github.com/concord-go/concord/distributeddata/store"
)

// Keys in Badger are a prefix and the key of the row.
const (
	rowPrefix  = 'r'
	metaPrefix = 'm'
)

// A value in Badger is a version, a checksum of version, key and value, and the value.
const (
	version = 1
	header  = 1 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns what Badger keeps for a value.
func seal(key, value []byte) []byte {
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

// sumIn returns the checksum that a sealed value carries, whether or not it is right.
func sumIn(sealed []byte) uint32 {
	if len(sealed) < header {
		return 0
	}
	return binary.LittleEndian.Uint32(sealed[1:])
}

// apply writes one step, and returns how it changes the sum of all rows.
func apply(txn *badger.Txn, o store.Op) (change uint32, err error) {
	key := append([]byte{rowPrefix}, o.Key...)
	item, err := txn.Get(key)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
	case err != nil:
		return 0, err
	default:
		if err := item.Value(func(v []byte) error { change = sumIn(v); return nil }); err != nil {
			return 0, err
		}
	}
	if o.Delete {
		return change, txn.Delete(key)
	}
	sealed := seal(key, o.Value)
	return change ^ sumIn(sealed), txn.Set(key, sealed)
}

// mark is what every transaction writes besides its rows.
type mark struct {
	number uint64 // of the transaction
	sum    uint32 // of all rows ever put and not deleted since: their checksums, by exclusive or
	told   uint32 // the difference to the rows that are there, as Load has told, so that it tells it once
}

var markKey = []byte{metaPrefix}

func (m mark) put(txn *badger.Txn) error {
	raw := binary.LittleEndian.AppendUint64(nil, m.number)
	raw = binary.LittleEndian.AppendUint32(raw, m.sum)
	return txn.Set(markKey, seal(markKey, binary.LittleEndian.AppendUint32(raw, m.told)))
}

// readMark reads it, zero if there is none. It is not trusted if it is damaged.
func readMark(txn *badger.Txn) (m mark, trusted bool, err error) {
	item, err := txn.Get(markKey)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return mark{}, true, nil
	}
	if err != nil {
		return mark{}, false, err
	}
	sealed, err := item.ValueCopy(nil)
	if err != nil {
		return mark{}, false, err
	}
	value, err := unseal(markKey, sealed)
	if trusted = err == nil && len(value) == 16; trusted {
		m.number = binary.LittleEndian.Uint64(value)
		m.sum = binary.LittleEndian.Uint32(value[8:])
		m.told = binary.LittleEndian.Uint32(value[12:])
	}
	return m, trusted, nil
}

// read returns a row, or why it cannot be trusted, and the checksum it carries.
func read(item *badger.Item) (r store.Row, sum uint32, err error) {
	r.Key = string(item.Key()[1:])
	sealed, err := item.ValueCopy(nil)
	if err == nil {
		sum = sumIn(sealed)
		r.Value, err = unseal(item.Key(), sealed)
	}
	if err != nil {
		return store.Row{Key: r.Key}, sum, store.Corrupt(r.Key, err.Error())
	}
	return r, sum, nil
}
