package wire

import pb "github.com/concord-go/concord/proto"

const (
	// Version is the version of the framing used by this node.
	Version = 1
	// MaxPayload is the maximum payload of one envelope, except of ShardingData. Senders split
	// larger payloads into several messages, so that none holds up the others for long.
	MaxPayload = 256 << 10
	// MaxData is the maximum payload of ShardingData, which carries messages of users. It leaves
	// room for the envelope within 4 MiB, the limit of gRPC if nothing else is configured.
	MaxData = 4_150_000
	// MaxName is the maximum length of the cluster name and the member id, in bytes.
	MaxName = 255
)

// Header identifies the sender and the receiver of an envelope.
type Header struct {
	// Cluster is the name of the cluster; empty on a virtual network without one.
	Cluster string
	// Member is the member id of the sender, as listed by its provider.
	Member string
	// From is the incarnation of the sending component, not 0.
	From uint64
	// To is the incarnation of the receiving component; 0 if the sender does not know it.
	To uint64
	// Keys is a digest of the set of keys that the sender keeps on its disk. It is 0 if there are
	// none, and in most messages.
	Keys uint64
}

// Seal puts payload into an envelope. It does not copy the payload, which must not be modified
// afterwards, since remoting marshals the envelope later, in another goroutine. Seal does not check
// bounds: the sender must keep the payload within MaxPayload or MaxData, and Open rejects larger
// ones.
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

// Open checks an envelope received by a member of cluster. The returned payload aliases the
// envelope and has not been decoded; the manifest may be unknown to this node.
//
// The error matches ErrMalformed, ErrVersion, ErrCluster or ErrSize. In that case header and
// manifest are unverified and only for logs.
func Open(env *pb.Envelope, cluster string) (Header, Manifest, []byte, error) {
	if env == nil {
		return Header{}, 0, nil, ErrMalformed
	}
	h := Header{Cluster: env.Cluster, Member: env.Member, From: env.From, To: env.To,
		Keys: env.Keys}
	m := Manifest(env.Manifest)
	return h, m, env.Payload, check(env, cluster)
}

func check(env *pb.Envelope, cluster string) error {
	most := MaxPayload
	if Manifest(env.Manifest) == ShardingData {
		most = MaxData
	}
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
	case len(env.Payload) > most:
		return &SizeError{"payload", len(env.Payload), most}
	}
	return nil
}
