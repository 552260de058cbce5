package fence

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
)

// Register is a replicated value that only holders of a lease write: the write with the highest
// token wins, and among equal tokens the later write. It is a value for package distributeddata and
// for maps of package crdt. The zero value is empty and encodes elements as JSON; use NewRegister
// for another codec. Copies are snapshots.
//
// A replica rejects a write whose token is lower than one it has seen. A replica that the newer
// token has not reached yet accepts such a write and shows it, until the newer write arrives: the
// old one loses every merge. So all replicas agree on what the newest tenure wrote, but a reader
// may see what an old tenure wrote in the meantime. For an effect that must not happen at all use a
// Guard or a Table.
//
// The writes of one tenure are numbered. Of two concurrent writes of one tenure at two replicas,
// the one with more writes before it wins, and then the one with the larger encoding.
//
// A register costs the encoded element and 17 bytes. It keeps no tombstones and no overwritten
// elements.
type Register[E any] struct {
	codec crdt.Codec[E]
	token coordination.Token // 0: empty
	turn  uint64             // counts the writes of the token, from 1
	bytes string             // the encoded element
}

// NewRegister returns an empty register whose element uses the codec.
func NewRegister[E any](c crdt.Codec[E]) Register[E] { return Register[E]{codec: c} }

func (r Register[E]) elements() crdt.Codec[E] {
	if r.codec == nil {
		return crdt.JSON[E]()
	}
	return r.codec
}

// Set writes e under a token. If the token is lower than that of the present element, the update
// fails with a *StaleError and writes nothing. It also fails for an invalid token, and for an
// element that cannot be encoded.
func (r *Register[E]) Set(w *crdt.Writer, token coordination.Token, e E) {
	if w.Err() != nil {
		return
	}
	next, err := r.with(token, e)
	if err != nil {
		w.Fail(err)
		return
	}
	*r = next
}

// with returns the register after the write.
func (r Register[E]) with(token coordination.Token, e E) (Register[E], error) {
	if err := checkToken(token); err != nil {
		return r, err
	}
	switch {
	case token < r.token:
		return r, &StaleError{Token: token, Highest: r.token}
	case token > r.token:
		r.token, r.turn = token, 0
	case r.turn == math.MaxUint64: // no writer gets there, but a forged state may claim it
		return r, fmt.Errorf("%w: register written 2^64-1 times under token %d", crdt.ErrTooLarge,
			token)
	}
	b, err := r.elements().Append(nil, e)
	r.turn, r.bytes = r.turn+1, string(b)
	return r, err
}

// Value returns the element, and whether one was written.
func (r Register[E]) Value() (e E, ok bool) {
	if r.token == 0 {
		return e, false
	}
	e, err := r.elements().Decode([]byte(r.bytes))
	return e, err == nil
}

// Token returns the token of the write that Value returns, or 0 if there is none.
func (r Register[E]) Token() coordination.Token { return r.token }

// Merge returns the write that wins.
func (r Register[E]) Merge(o Register[E]) Register[E] {
	if cmp.Or(cmp.Compare(o.token, r.token), cmp.Compare(o.turn, r.turn),
		cmp.Compare(o.bytes, r.bytes)) > 0 {
		r.token, r.turn, r.bytes = o.token, o.turn, o.bytes
	}
	return r
}

// registerFormat is the first byte of the encoding. The token and the turn follow, big endian, and
// then the element.
const (
	registerFormat = 1
	registerHead   = 1 + 8 + 8
)

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (r Register[E]) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, registerFormat)
	if r.token == 0 {
		return dst, nil
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.token))
	dst = binary.BigEndian.AppendUint64(dst, r.turn)
	return append(dst, r.bytes...), nil
}

// Decode returns the register that AppendBinary encoded in src, with the receiver's codec.
func (r Register[E]) Decode(src []byte) (Register[E], error) {
	if len(src) == 0 || src[0] != registerFormat {
		return r, fmt.Errorf("%w: format of a fenced register", crdt.ErrMalformed)
	}
	empty := Register[E]{codec: r.codec}
	if len(src) == 1 {
		return empty, nil
	}
	if len(src) < registerHead {
		return r, fmt.Errorf("%w: fenced register of %d bytes", crdt.ErrMalformed, len(src))
	}
	next := empty
	next.token = coordination.Token(binary.BigEndian.Uint64(src[1:]))
	next.turn = binary.BigEndian.Uint64(src[9:])
	next.bytes = string(src[registerHead:])
	if checkToken(next.token) != nil || next.turn == 0 {
		return r, fmt.Errorf("%w: fenced register with token %d and turn %d", crdt.ErrMalformed,
			next.token, next.turn)
	}
	if _, err := next.elements().Decode(src[registerHead:]); err != nil {
		return r, fmt.Errorf("fenced register: %w", err)
	}
	return next, nil
}

// String returns the element and its token, or "empty".
func (r Register[E]) String() string {
	e, ok := r.Value()
	if !ok {
		return "empty"
	}
	return fmt.Sprintf("%v (token %d)", e, r.token)
}

// MarshalJSON returns the element, or null.
func (r Register[E]) MarshalJSON() ([]byte, error) {
	e, ok := r.Value()
	if !ok {
		return []byte("null"), nil
	}
	return json.Marshal(e)
}
