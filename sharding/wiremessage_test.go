package sharding

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// generatedOf returns the generated message with the same content.
func generatedOf(m wireMessage, unknown protoreflect.RawFields) *pb.ShardingParcel {
	out := &pb.ShardingParcel{
		Shard: uint32(m.shard), Token: m.token, Number: m.number, Entity: m.entity, Type: m.typ,
		Payload: m.payload, SenderAddress: m.senderAddress, SenderId: m.senderID, Header: m.header,
		Delivery: m.delivery, Again: m.again, Origin: m.origin,
	}
	out.ProtoReflect().SetUnknown(unknown)
	return out
}

// Generated code and the code of this package read what the other writes.
func TestWireMessage_IsAShardingParcel(t *testing.T) {
	long := strings.Repeat("x", 1<<17)
	for _, m := range []wireMessage{
		{},
		{shard: 3, token: 7, number: 1, entity: "x", typ: "t", payload: []byte("p"),
			senderAddress: "a:1", senderID: "s"},
		{
			shard: maxShards - 1, token: math.MaxInt64, number: math.MaxUint64,
			entity: long, typ: long,
			payload: []byte(long), senderAddress: long, senderID: long,
			delivery: math.MaxUint64, again: true,
			origin: math.MaxUint64, header: map[string]string{"": "", "key": long, long: "value"},
		},
	} {
		b := m.appendTo(nil)
		require.Len(t, b, m.size())
		var in pb.ShardingParcel
		require.NoError(t, proto.Unmarshal(b, &in))
		require.True(t, proto.Equal(generatedOf(m, nil), &in))
		written, err := proto.Marshal(&in)
		require.NoError(t, err)
		again, err := decodeWireMessage(written, &names{})
		require.NoError(t, err)
		require.Equal(t, m, again)
	}
}

// What a link collects is read by generated code, and is split into batches.
func TestLink_CollectsShardingData(t *testing.T) {
	k := newLink(nil, core.Member{})
	k.busy = true // nothing is sent
	payload := make([]byte, 10_000)
	for n := range 30 {
		require.True(t, k.add(&wireMessage{shard: 2, token: 7, number: uint64(n + 1), entity: "x",
			payload: payload}, 0))
	}
	k.confirm(core.Confirm{Shard: 0, Number: 5})
	k.confirm(core.Confirm{Shard: 300, Number: 1 << 40})
	parcels, confirmed := uint64(0), []string{}
	for _, b := range append(k.full, k.data) {
		require.LessOrEqual(t, len(b), batchSize)
		var in pb.ShardingData
		require.NoError(t, proto.Unmarshal(b, &in))
		for _, p := range in.Parcels {
			parcels++
			require.Equal(t, parcels, p.Number)
		}
		for _, c := range in.Confirmed {
			require.Len(t, c.Numbers, 1)
			confirmed = append(confirmed, strings.Repeat("*", int(c.Shard/100)))
			require.Contains(t, []uint64{5, 1 << 40}, c.Numbers[0])
		}
	}
	require.EqualValues(t, 30, parcels)
	require.Equal(t, []string{"", "***"}, confirmed)
	require.Len(t, k.full, 4)
}
