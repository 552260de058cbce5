package sharding

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// packet is a concord.v1.ShardingParcel. It is encoded and decoded here, since generated code would
// allocate several times for each message to another member.
type packet struct {
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

// size returns the length of the encoded packet.
func (p *packet) size() int {
	n := sizeVarint(uint64(p.shard)) + sizeVarint(p.token) + sizeVarint(p.number) +
		sizeBytes(len(p.entity)) + sizeBytes(len(p.typ)) + sizeBytes(len(p.payload)) +
		sizeBytes(len(p.senderAddress)) + sizeBytes(len(p.senderID)) + sizeVarint(p.delivery)
	for key, value := range p.header {
		n += 1 + protowire.SizeBytes(sizeBytes(len(key))+sizeBytes(len(value)))
	}
	if p.again {
		n += 2
	}
	if p.origin != 0 {
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

// appendTo appends the encoded packet.
func (p *packet) appendTo(b []byte) []byte {
	b = appendVarint(b, fieldShard, uint64(p.shard))
	b = appendVarint(b, fieldToken, p.token)
	b = appendVarint(b, fieldNumber, p.number)
	b = appendString(b, fieldEntity, p.entity)
	b = appendString(b, fieldType, p.typ)
	if len(p.payload) > 0 {
		b = protowire.AppendTag(b, fieldPayload, protowire.BytesType)
		b = protowire.AppendBytes(b, p.payload)
	}
	b = appendString(b, fieldSenderAddress, p.senderAddress)
	b = appendString(b, fieldSenderID, p.senderID)
	for key, value := range p.header {
		b = protowire.AppendTag(b, fieldHeader, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizeBytes(len(key))+sizeBytes(len(value))))
		b = appendString(b, fieldKey, key)
		b = appendString(b, fieldValue, value)
	}
	b = appendVarint(b, fieldDelivery, p.delivery)
	if p.again {
		b = appendVarint(b, fieldAgain, 1)
	}
	if p.origin != 0 {
		b = protowire.AppendTag(b, fieldOrigin, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, p.origin)
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

// names caches the texts of a batch that repeat from packet to packet.
type names struct{ typ, address, id string }

// text returns b as a string: the cached one if it is equal.
func text(b []byte, cached *string) string {
	if *cached != string(b) {
		*cached = string(b)
	}
	return *cached
}

// decodePacket is the inverse of appendTo.
func decodePacket(in []byte, c *names) (p packet, err error) {
	shard := uint64(0)
	err = fields(in, func(n protowire.Number, t protowire.Type, v uint64, b []byte) error {
		switch {
		case n == fieldShard && t == protowire.VarintType:
			shard = v
		case n == fieldToken && t == protowire.VarintType:
			p.token = v
		case n == fieldNumber && t == protowire.VarintType:
			p.number = v
		case n == fieldEntity && t == protowire.BytesType:
			p.entity = string(b)
		case n == fieldType && t == protowire.BytesType:
			p.typ = text(b, &c.typ)
		case n == fieldPayload && t == protowire.BytesType:
			p.payload = b
		case n == fieldSenderAddress && t == protowire.BytesType:
			p.senderAddress = text(b, &c.address)
		case n == fieldSenderID && t == protowire.BytesType:
			p.senderID = text(b, &c.id)
		case n == fieldHeader && t == protowire.BytesType:
			return p.addHeader(b)
		case n == fieldDelivery && t == protowire.VarintType:
			p.delivery = v
		case n == fieldAgain && t == protowire.VarintType:
			p.again = v != 0
		case n == fieldOrigin && t == protowire.Fixed64Type:
			p.origin = v
		}
		return nil
	})
	switch {
	case err != nil:
		return packet{}, err
	case shard >= maxShards:
		return packet{}, fmt.Errorf("shard %d, at most %d", shard, maxShards-1)
	case !utf8.ValidString(p.senderAddress) || !utf8.ValidString(p.senderID):
		return packet{}, errors.New("sender is not UTF-8")
	}
	p.shard = int(shard)
	return p, fits(uint32(shard), p.token)
}

// addHeader adds one encoded entry of the header.
func (p *packet) addHeader(in []byte) error {
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
	if p.header == nil {
		p.header = map[string]string{}
	}
	p.header[key] = value
	return nil
}
