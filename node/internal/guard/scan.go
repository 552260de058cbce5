package guard

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of one message. They are far above what Proto.Actor sends, and keep the decoded size in
// proportion to the received size.
const (
	maxEnvelopes  = 4096     // in a batch; also types, targets and senders
	maxHeaders    = 64       // of one envelope
	maxFields     = 64       // of a message, and of an envelope
	maxAllHeaders = 4096     // of a batch
	maxText       = 1024     // bytes of a type, an actor's id, or an address
	maxAnswer     = 64 << 10 // bytes of an answer from the other end
	// maxFirst is the largest size of a stream's first message, in bytes: one version of
	// Proto.Actor lists blocked members in it.
	maxFirst = 256 << 10
	// maxHeaderList bounds the headers of a call, decompressed.
	maxHeaderList = 8 << 10
)

// Field numbers of Proto.Actor's messages. They are the same in all its versions.
const (
	inRemoteMessageBatch = 1 // the kinds of messages have the numbers from 1 to 4
	lastKind             = 4

	inBatchTypes     = 1
	inBatchTargets   = 2
	inBatchEnvelopes = 3
	inBatchSenders   = 4

	inEnvelopeHeader = 6
	inHeaderData     = 1
)

// fields calls f for each length-delimited field of a message with its bytes. Groups, which no
// version sends, are an error.
func fields(b []byte, f func(n protowire.Number, value []byte) error) error {
	return atMost(math.MaxInt, b, f)
}

// atMost is fields for a message that has at most some fields, of any type.
func atMost(most int, b []byte, f func(n protowire.Number, value []byte) error) error {
	for count := 1; len(b) > 0; count++ {
		n, value, size, err := nextField(b)
		switch {
		case err != nil:
			return err
		case count > most:
			return fmt.Errorf("more than %d fields", most)
		case value != nil:
			if err := f(n, value); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

// nextField returns the number of the first field of b, its bytes if it is length-delimited, else
// nil, and the length of the whole field.
func nextField(b []byte) (n protowire.Number, value []byte, size int, err error) {
	if len(b) >= 2 && b[0] >= 1<<3 && b[0] < 1<<7 && b[1] < 1<<7 { // nearly all fields that occur
		switch size := int(b[1]) + 2; {
		case b[0]&7 == byte(protowire.VarintType):
			return protowire.Number(b[0] >> 3), nil, 2, nil
		case b[0]&7 == byte(protowire.BytesType) && size <= len(b):
			return protowire.Number(b[0] >> 3), b[2:size:size], size, nil
		}
	}
	n, t, size := protowire.ConsumeTag(b)
	if size < 0 {
		return 0, nil, 0, protowire.ParseError(size)
	}
	var rest int
	switch t {
	case protowire.BytesType:
		value, rest = protowire.ConsumeBytes(b[size:])
	case protowire.StartGroupType, protowire.EndGroupType:
		return 0, nil, 0, fmt.Errorf("field %d is a group", n)
	default:
		rest = protowire.ConsumeFieldValue(n, t, b[size:])
	}
	if rest < 0 {
		return 0, nil, 0, protowire.ParseError(rest)
	}
	return n, value, size + rest, nil
}

// sizes counts the elements that a message would decode to.
type sizes struct{ envelopes, types, targets, senders, headers int }

// scan returns why a message must not be decoded, or nil. A message has few fields: a decoder that
// meets a second kind of message in it throws away what it has decoded.
func scan(msg []byte, maxEnvelopes int) error {
	var s sizes
	return atMost(maxFields, msg, func(n protowire.Number, value []byte) error {
		switch {
		case n == inRemoteMessageBatch:
			return s.batch(value, maxEnvelopes)
		case n <= lastKind:
			return atMost(maxFields, value, func(protowire.Number, []byte) error { return nil })
		}
		return nil
	})
}

func (s *sizes) batch(b []byte, limit int) error {
	for unknown := 0; len(b) > 0; {
		n, value, size, err := nextField(b)
		switch {
		case err != nil:
			return err
		case value == nil || n > inBatchSenders:
			unknown++
		default:
			err = s.add(n, value, limit)
		}
		if err == nil && unknown > maxFields {
			err = fmt.Errorf("more than %d unknown fields", maxFields)
		}
		if err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

func (s *sizes) add(n protowire.Number, value []byte, limit int) error {
	switch n {
	case inBatchTypes:
		s.types++
		return within("types", s.types, limit, "bytes of a type", len(value), maxText)
	case inBatchTargets:
		s.targets++
		return within("targets", s.targets, limit, "bytes of a target", len(value), 3*maxText)
	case inBatchSenders:
		s.senders++
		return within("senders", s.senders, limit, "bytes of a sender", len(value), 3*maxText)
	case inBatchEnvelopes:
		s.envelopes++
		if s.envelopes > limit {
			return fmt.Errorf("more than %d envelopes", limit)
		}
		return s.envelope(value)
	}
	return nil
}

func within(what string, n, limit int, whatSize string, size, maxSize int) error {
	if n > limit {
		return fmt.Errorf("more than %d %s", limit, what)
	}
	if size > maxSize {
		return fmt.Errorf("%d %s, at most %d", size, whatSize, maxSize)
	}
	return nil
}

func (s *sizes) envelope(b []byte) error {
	headers := 0
	for count := 1; len(b) > 0; count++ {
		n, header, size, err := nextField(b)
		if err != nil {
			return err
		}
		b = b[size:]
		if count > maxFields {
			return fmt.Errorf("an envelope has more than %d fields", maxFields)
		}
		if n != inEnvelopeHeader || header == nil {
			continue
		}
		if err := s.header(header, &headers); err != nil {
			return err
		}
	}
	return nil
}

func (s *sizes) header(b []byte, ofEnvelope *int) error {
	return fields(b, func(n protowire.Number, _ []byte) error {
		if n == inHeaderData {
			*ofEnvelope++
			s.headers++
		}
		if *ofEnvelope > maxHeaders || s.headers > maxAllHeaders {
			return fmt.Errorf("%d headers of an envelope, %d of the batch, at most %d and %d",
				*ofEnvelope, s.headers, maxHeaders, maxAllHeaders)
		}
		return nil
	})
}
