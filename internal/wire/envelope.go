package wire

import pb "github.com/concord-go/concord/proto"

const (
	// Version of the framing this node speaks.
	Version = 1
	// MaxPayload bounds the payload of one envelope. Remoting packs up to a thousand messages
	// into one gRPC message, and loses the whole batch when that is too large; what is larger
	// than this is cut into several messages by who sends it.
	MaxPayload = 256 << 10
	// MaxName bounds the cluster name and the member id, in bytes.
	MaxName = 255
)

// Header says who sends an envelope to whom.
type Header struct {
	// Cluster is the name of the cluster; empty on a virtual network without one.
	Cluster string
	// Member is the member id of the sender, as its provider lists it.
	Member string
	// From is the incarnation of the sending component, not 0.
	From uint64
	// To is the incarnation of the component meant; 0 while the sender does not know it.
	To uint64
	// Keys is a digest of what keys the sender keeps on its disk; 0 if it keeps none, and in most messages.
	Keys uint64
}

// Seal puts payload into an envelope. The payload is not copied: nobody may write to it again,
// since remoting marshals the envelope later, in another goroutine. Seal does not check bounds: who
// builds a payload keeps it below MaxPayload, and Open at the other end refuses what is not.
func Seal(h Header, m Manifest, payload []byte) *pb.Envelope {
	return &pb.Envelope{
		Version:  Version,
		Manifest: uint32(m),
		Cluster:  h.Cluster,
		Member:   h.Member,
		From:     h.From,
		To:       h.To,
		Keys:     h.Keys,
		Payload:  payload,
	}
}

// Open checks an envelope received by a member of cluster. The payload is the one in the envelope,
// not a copy, and still to be decoded; the manifest may be one that this node does not know.
//
// The error matches ErrMalformed, ErrVersion, ErrCluster or ErrSize. Header and manifest are then
// what the envelope claims, for logs only.
func Open(env *pb.Envelope, cluster string) (Header, Manifest, []byte, error) {
	if env == nil {
		return Header{}, 0, nil, ErrMalformed
	}
	h := Header{Cluster: env.Cluster, Member: env.Member, From: env.From, To: env.To, Keys: env.Keys}
	m := Manifest(env.Manifest)
	return h, m, env.Payload, check(env, cluster)
}

func check(env *pb.Envelope, cluster string) error {
	switch {
	case env.Version != Version:
		return &VersionError{env.Version}
	case env.Cluster != cluster:
		if len(env.Cluster) > MaxName {
			return &SizeError{"cluster", len(env.Cluster), MaxName}
		}
		return &ClusterError{env.Cluster, cluster}
	case env.Member == "" || env.From == 0 || env.Manifest == 0:
		return ErrMalformed
	case len(env.Member) > MaxName:
		return &SizeError{"member", len(env.Member), MaxName}
	case len(env.Payload) > MaxPayload:
		return &SizeError{"payload", len(env.Payload), MaxPayload}
	}
	return nil
}
