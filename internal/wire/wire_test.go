package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var header = wire.Header{Cluster: "shop", Member: "m1", From: 7, To: 9}

func TestSealedIsOpened(t *testing.T) {
	raw, err := proto.Marshal(wire.Seal(header, wire.ReplicatorPush, []byte("abc")))
	require.NoError(t, err)
	var env pb.Envelope
	require.NoError(t, proto.Unmarshal(raw, &env))
	h, m, payload, err := wire.Open(&env, "shop")
	require.NoError(t, err)
	require.Equal(t, header, h)
	require.Equal(t, wire.ReplicatorPush, m)
	require.Equal(t, []byte("abc"), payload)
}

// Nodes of other versions must be able to read this forever.
func TestWireFixture(t *testing.T) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(
		wire.Seal(header, wire.MembershipHello, []byte("abc")))
	require.NoError(t, err)
	require.Equal(t, "080110011a0473686f7022026d312907000000000000003109000000000000003a03616263",
		fmt.Sprintf("%x", raw))
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", wire.MaxName+1)
	for name, test := range map[string]struct {
		change func(*pb.Envelope)
		want   error
		text   string
	}{
		"future version": {func(e *pb.Envelope) {
			e.Version = 2
		}, wire.ErrVersion, "unknown version 2, this node speaks 1"},
		"no version": {func(e *pb.Envelope) { e.Version = 0 }, wire.ErrVersion, "version 0"},
		"other cluster": {func(e *pb.Envelope) {
			e.Cluster = "shop2"
		}, wire.ErrCluster, `"shop2", this is "shop"`},
		"long cluster": {func(e *pb.Envelope) {
			e.Cluster = long
		}, wire.ErrSize, "cluster has 256 bytes, limit 255"},
		"long member": {func(e *pb.Envelope) {
			e.Member = long
		}, wire.ErrSize, "member has 256"},
		"large payload": {func(e *pb.Envelope) {
			e.Payload = make([]byte, wire.MaxPayload+1)
		}, wire.ErrSize, "payload has 262145 bytes, limit 262144"},
		"large data": {func(e *pb.Envelope) {
			e.Manifest = uint32(wire.ShardingData)
			e.Payload = make([]byte, wire.MaxData+1)
		}, wire.ErrSize, "payload has 4150001 bytes, limit 4150000"},
		"nobody":         {func(e *pb.Envelope) { e.Member = "" }, wire.ErrMalformed, "malformed"},
		"no incarnation": {func(e *pb.Envelope) { e.From = 0 }, wire.ErrMalformed, "malformed"},
		"no manifest": {func(e *pb.Envelope) {
			e.Manifest = 0
		}, wire.ErrMalformed, "malformed"},
		"not an envelope": {func(e *pb.Envelope) { e.Reset() }, wire.ErrVersion, "version 0"},
	} {
		e := wire.Seal(header, wire.MembershipHello, nil)
		test.change(e)
		_, _, _, err := wire.Open(e, "shop")
		require.ErrorIs(t, err, test.want, name)
		require.ErrorContains(t, err, test.text, name)
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", err), test.want, name)
		for _, other := range []error{wire.ErrVersion, wire.ErrCluster, wire.ErrSize,
			wire.ErrMalformed} {
			require.Equal(t, errors.Is(other, test.want), errors.Is(err, other), name)
		}
	}
	_, _, _, err := wire.Open(nil, "shop")
	require.ErrorIs(t, err, wire.ErrMalformed)
}

func TestLimitsThemselvesPass(t *testing.T) {
	h := header
	h.Member = strings.Repeat("x", wire.MaxName)
	_, _, _, err := wire.Open(wire.Seal(h, 4711, make([]byte, wire.MaxPayload)), "shop")
	require.NoError(t, err, "an unknown manifest is for the component to drop")
	_, _, _, err = wire.Open(wire.Seal(h, wire.ShardingData, make([]byte, wire.MaxData)), "shop")
	require.NoError(t, err)
}

func TestManifestNames(t *testing.T) {
	require.Equal(t, "membership.hello", wire.MembershipHello.String())
	require.Equal(t, "replicator.probe-reply", wire.ReplicatorProbeReply.String())
	require.Equal(t, "manifest(0)", wire.Manifest(0).String())
	require.Equal(t, "manifest(4294967295)", wire.Manifest(1<<32-1).String())
}

func FuzzOpen(f *testing.F) {
	raw, _ := proto.Marshal(wire.Seal(header, wire.MembershipHello, []byte("abc")))
	f.Add(raw)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var env pb.Envelope
		if proto.Unmarshal(raw, &env) != nil {
			return
		}
		h, m, payload, err := wire.Open(&env, "shop")
		if err != nil {
			_ = err.Error()
			return
		}
		again := wire.Seal(h, m, payload)
		h2, m2, payload2, err := wire.Open(again, "shop")
		if err != nil || h != h2 || m != m2 || string(payload) != string(payload2) {
			t.Fatal("what is opened is not what was sealed")
		}
		if len(payload) > wire.MaxData || h.Member == "" || h.From == 0 {
			t.Fatal("let through")
		}
	})
}
