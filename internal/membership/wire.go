package membership

import (
	"errors"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"google.golang.org/protobuf/proto"
)

// errPayload: the payload is not a hello of this version.
var errPayload = errors.New("membership: malformed hello")

// encode seals h. The result shares nothing with the core.
func encode(hdr wire.Header, h hello) (*pb.Envelope, error) {
	payload, err := proto.Marshal(&pb.Hello{
		Address: h.address, Sequence: h.sequence, Stamp: h.stamp, MaxStamp: h.maxStamp,
		ViewHash: h.viewHash, ListsYou: h.listsYou, Answer: h.answer,
	})
	if err != nil {
		return nil, err
	}
	return wire.Seal(hdr, wire.MembershipHello, payload), nil
}

// decode opens an envelope that anybody may have sent.
func decode(env *pb.Envelope, cluster string) (received, error) {
	hdr, manifest, payload, err := wire.Open(env, cluster)
	if err != nil {
		return received{}, err
	}
	var m pb.Hello
	// A hello is an address and some numbers: what is much larger is not one.
	if manifest != wire.MembershipHello || len(payload) > 4*wire.MaxName {
		return received{}, errPayload
	}
	if proto.Unmarshal(payload, &m) != nil || len(m.Address) > wire.MaxName {
		return received{}, errPayload
	}
	return received{member: hdr.Member, from: hdr.From, to: hdr.To, hello: hello{
		address: m.Address, sequence: m.Sequence, stamp: m.Stamp, maxStamp: m.MaxStamp,
		viewHash: m.ViewHash, listsYou: m.ListsYou, answer: m.Answer,
	}}, nil
}

func why(err error) reason {
	if errors.Is(err, wire.ErrCluster) || errors.Is(err, wire.ErrVersion) {
		return whyForeign
	}
	return whyMalformed
}
