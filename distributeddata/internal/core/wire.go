package core

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/linear"
	pb "github.com/concord-go/concord/proto"
)

// maxRecord bounds a piece of an answer that is assembled before it is decoded [R21]. It is more
// than the size of a part plus one atom with a path of causal.MaxPath and a payload of
// causal.MaxState.
const maxRecord = 2 * causal.MaxState

var errMalformed = errors.New("core: malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// encode marshals a payload. It cannot fail, since every string in our messages has been checked.
func encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("core: own message does not encode: " + err.Error())
	}
	return b
}

// decode unmarshals a payload of a peer into m.
func decode(b []byte, m proto.Message) error {
	err := linear.Check(m.ProtoReflect().Descriptor(), b)
	if err == nil {
		err = (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m)
	}
	if err != nil {
		return malformed("%v", err)
	}
	return nil
}

// encodeMemory returns a memory as it is stored; decodeMemory decodes it.
func encodeMemory(m quorum.Memory) []byte {
	return encode(&pb.Members{Members: quorum.Encode(m.Members())})
}

func decodeMemory(b []byte) (quorum.Memory, error) {
	var m pb.Members
	if err := decode(b, &m); err != nil {
		return quorum.Memory{}, err
	}
	return quorum.Decode(m.Members)
}

// digest returns a nonzero hash of a vector.
func digest(v causal.Vector) uint64 { return v.Hash() | 1 }
