package sharding

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireMessage is a concord.v1.ShardingParcel. It is encoded and decoded here, since generated code
// would allocate several times for each message to another member.
type wireMessage struct {
	shard         int
	token, number uint64
	entity, typ   string
	payload       []byte // on decoding, it aliases the input
	senderAddress string
	senderID      string
	header        map[string]string
	delivery      uint64
	again         bool
	origin        uint64
}

// Fields of concord.v1.ShardingParcel, ShardingData and ShardingConfirmed.
const (
	fieldShard protowire.Number = iota + 1
	fieldToken
	fieldNumber
	fieldEntity
	fieldType
	fieldPayload
	fieldSenderAddress
	fieldSenderID
	fieldHeader
	fieldDelivery
	fieldAgain
	fieldOrigin

	fieldParcels   protowire.Number = 1
	fieldConfirmed protowire.Number = 2
	fieldKey       protowire.Number = 1
	fieldValue     protowire.Number = 2
	fieldNumbers   protowire.Number = 2
)

// size returns the length of the encoded message.
func (m *wireMessage) size() int {
	n := sizeVarint(uint64(m.shard)) + sizeVarint(m.token) + sizeVarint(m.number) +
		sizeBytes(len(m.entity)) + sizeBytes(len(m.typ)) + sizeBytes(len(m.payload)) +
		sizeBytes(len(m.senderAddress)) + sizeBytes(len(m.senderID)) + sizeVarint(m.delivery)
	for key, value := range m.header {
		n += 1 + protowire.SizeBytes(sizeBytes(len(key))+sizeBytes(len(value)))
	}
	if m.again {
		n += 2
	}
	if m.origin != 0 {
		n += 1 + 8
	}
	return n
}

// sizeVarint and sizeBytes return the length of a field with a number below 16; 0 if it is empty.
func sizeVarint(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

func sizeBytes(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(n)
}

// appendTo appends the encoded message.
func (m *wireMessage) appendTo(b []byte) []byte {
	b = appendVarint(b, fieldShard, uint64(m.shard))
	b = appendVarint(b, fieldToken, m.token)
	b = appendVarint(b, fieldNumber, m.number)
	b = appendString(b, fieldEntity, m.entity)
	b = appendString(b, fieldType, m.typ)
	if len(m.payload) > 0 {
		b = protowire.AppendTag(b, fieldPayload, protowire.BytesType)
		b = protowire.AppendBytes(b, m.payload)
	}
	b = appendString(b, fieldSenderAddress, m.senderAddress)
	b = appendString(b, fieldSenderID, m.senderID)
	for key, value := range m.header {
		b = protowire.AppendTag(b, fieldHeader, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizeBytes(len(key))+sizeBytes(len(value))))
		b = appendString(b, fieldKey, key)
		b = appendString(b, fieldValue, value)
	}
	b = appendVarint(b, fieldDelivery, m.delivery)
	if m.again {
		b = appendVarint(b, fieldAgain, 1)
	}
	if m.origin != 0 {
		b = protowire.AppendTag(b, fieldOrigin, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, m.origin)
	}
	return b
}

func appendVarint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func appendString(b []byte, n protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

// errTruncated means that an encoded message ends early or has a field that is not well-formed.
var errTruncated = errors.New("malformed field")

// fields calls do for each field of an encoded message, with v for a number and b for bytes. do
// returns an error to stop.
func fields(in []byte, do func(n protowire.Number, t protowire.Type, v uint64,
	b []byte) error) error {
	for len(in) > 0 {
		n, t, size := protowire.ConsumeTag(in)
		if size < 0 {
			return errTruncated
		}
		in = in[size:]
		var v uint64
		var b []byte
		switch t {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(in)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(in)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(in)
		default:
			size = protowire.ConsumeFieldValue(n, t, in)
		}
		if size < 0 {
			return errTruncated
		}
		in = in[size:]
		if err := do(n, t, v, b); err != nil {
			return err
		}
	}
	return nil
}

// names caches the texts of a batch that repeat from message to message.
type names struct{ typ, address, id string }

// text returns b as a string: the cached one if it is equal.
func text(b []byte, cached *string) string {
	if *cached != string(b) {
		*cached = string(b)
	}
	return *cached
}

// decodeWireMessage is the inverse of appendTo.
func decodeWireMessage(in []byte, c *names) (m wireMessage, err error) {
	shard := uint64(0)
	err = fields(in, func(n protowire.Number, t protowire.Type, v uint64, b []byte) error {
		switch {
		case n == fieldShard && t == protowire.VarintType:
			shard = v
		case n == fieldToken && t == protowire.VarintType:
			m.token = v
		case n == fieldNumber && t == protowire.VarintType:
			m.number = v
		case n == fieldEntity && t == protowire.BytesType:
			m.entity = string(b)
		case n == fieldType && t == protowire.BytesType:
			m.typ = text(b, &c.typ)
		case n == fieldPayload && t == protowire.BytesType:
			m.payload = b
		case n == fieldSenderAddress && t == protowire.BytesType:
			m.senderAddress = text(b, &c.address)
		case n == fieldSenderID && t == protowire.BytesType:
			m.senderID = text(b, &c.id)
		case n == fieldHeader && t == protowire.BytesType:
			return m.addHeader(b)
		case n == fieldDelivery && t == protowire.VarintType:
			m.delivery = v
		case n == fieldAgain && t == protowire.VarintType:
			m.again = v != 0
		case n == fieldOrigin && t == protowire.Fixed64Type:
			m.origin = v
		}
		return nil
	})
	switch {
	case err != nil:
		return wireMessage{}, err
	case shard >= maxShards:
		return wireMessage{}, fmt.Errorf("shard %d, at most %d", shard, maxShards-1)
	case !utf8.ValidString(m.senderAddress) || !utf8.ValidString(m.senderID):
		return wireMessage{}, errors.New("sender is not UTF-8")
	}
	m.shard = int(shard)
	return m, fits(uint32(shard), m.token)
}

// addHeader adds one encoded entry of the header.
func (m *wireMessage) addHeader(in []byte) error {
	var key, value string
	err := fields(in, func(n protowire.Number, t protowire.Type, _ uint64, b []byte) error {
		switch {
		case t != protowire.BytesType:
		case n == fieldKey:
			key = string(b)
		case n == fieldValue:
			value = string(b)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !utf8.ValidString(key) || !utf8.ValidString(value):
		return errors.New("header is not UTF-8")
	}
	if m.header == nil {
		m.header = map[string]string{}
	}
	m.header[key] = value
	return nil
}
