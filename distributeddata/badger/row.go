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

func put(txn *badger.Txn, prefix byte, o store.Op) error {
	key := append([]byte{prefix}, o.Key...)
	if o.Delete {
		return txn.Delete(key)
	}
	return txn.Set(key, seal(key, o.Value))
}

// open returns a copy of the value of an item.
func open(item *badger.Item) ([]byte, error) {
	sealed, err := item.ValueCopy(nil)
	if err != nil {
		return nil, err
	}
	return unseal(item.Key(), sealed)
}

// numberRow is the row with the number of the last commit.
func numberRow(n uint64) store.Op {
	return store.Op{Row: store.Row{Key: "number", Value: binary.LittleEndian.AppendUint64(nil, n)}}
}

// lastNumber reads it, 0 if there is none. It is not trusted if the row is damaged.
func (s *Store) lastNumber() (number uint64, trusted bool, err error) {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(append([]byte{metaPrefix}, "number"...))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	value, err := open(item)
	if err != nil || len(value) != 8 {
		return 0, false, nil
	}
	return binary.LittleEndian.Uint64(value), true, nil
}
