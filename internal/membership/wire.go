package membership

import (
	"errors"
	"math"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"google.golang.org/protobuf/proto"
)

// errPayload is returned for a payload that is not a message of this version.
var errPayload = errors.New("membership: malformed message")

// maxNames is the maximum number of addresses named in one message.
const maxNames = 128

// encode seals h. The result shares no memory with the core.
func encode(hdr wire.Header, h hello) (*pb.Envelope, error) {
	payload, err := proto.Marshal(&pb.Hello{
		Address: h.address, Sequence: h.sequence, Stamp: h.stamp, MaxStamp: h.maxStamp,
		ViewHash: h.viewHash, ListsYou: h.listsYou, Answer: h.answer,
		Size: uint32(min(h.size, math.MaxUint32)), Oldest: h.oldest, OldestMark: h.mark,
		Arbiter: h.arbiter, Disowned: h.disowned,
		DroppedYou: h.droppedYou, Yield: h.yield, Permit: h.permit, Declined: h.declined,
		Leaving: h.leaving, Pledge: []byte(h.pledge), Proof: []byte(h.proof),
	})
	if err != nil {
		return nil, err
	}
	return wire.Seal(hdr, wire.MembershipHello, payload), nil
}

// encodeNames seals addresses.
func encodeNames(hdr wire.Header, addresses []string) (*pb.Envelope, error) {
	payload, err := proto.Marshal(&pb.Others{Addresses: addresses})
	if err != nil {
		return nil, err
	}
	return wire.Seal(hdr, wire.MembershipOthers, payload), nil
}

// decode opens an envelope from an untrusted sender. The result is a received or a named.
func decode(env *pb.Envelope, cluster string) (event, error) {
	hdr, manifest, payload, err := wire.Open(env, cluster)
	if err != nil {
		return nil, err
	}
	switch manifest {
	case wire.MembershipHello:
		return decodeHello(hdr, payload)
	case wire.MembershipOthers:
		return decodeNames(hdr, payload)
	}
	return nil, errPayload
}

func decodeNames(hdr wire.Header, payload []byte) (event, error) {
	var m pb.Others
	if len(payload) > maxNames*(wire.MaxName+4) || proto.Unmarshal(payload, &m) != nil ||
		len(m.Addresses) > maxNames {
		return nil, errPayload
	}
	for _, a := range m.Addresses {
		if len(a) > wire.MaxName {
			return nil, errPayload
		}
	}
	return named{member: hdr.Member, from: hdr.From, to: hdr.To, addresses: m.Addresses}, nil
}

// decodeHello rejects payloads much larger than an address and some numbers.
func decodeHello(hdr wire.Header, payload []byte) (event, error) {
	var m pb.Hello
	if len(payload) > 4*wire.MaxName || proto.Unmarshal(payload, &m) != nil ||
		len(m.Address) > wire.MaxName || len(m.Pledge) > proofSize || len(m.Proof) > proofSize {
		return nil, errPayload
	}
	return received{member: hdr.Member, from: hdr.From, to: hdr.To, hello: hello{
		address: m.Address, sequence: m.Sequence, stamp: m.Stamp, maxStamp: m.MaxStamp,
		viewHash: m.ViewHash, listsYou: m.ListsYou, answer: m.Answer,
		claim: claim{size: uint64(m.Size), oldest: m.Oldest, mark: m.OldestMark,
			arbiter: m.Arbiter, disowned: m.Disowned},
		droppedYou: m.DroppedYou, yield: m.Yield, permit: m.Permit, declined: m.Declined,
		leaving: m.Leaving, pledge: string(m.Pledge), proof: string(m.Proof),
	}}, nil
}

func why(err error) reason {
	if errors.Is(err, wire.ErrCluster) || errors.Is(err, wire.ErrVersion) {
		return whyForeign
	}
	return whyMalformed
}
