package sharding

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "github.com/concord-go/concord/proto"
)

func TestParcel_SizeIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<21)
	for _, p := range []*pb.ShardingParcel{
		{},
		{Shard: 3, Token: 7, Number: 1, Entity: "x", Type: "t", Payload: []byte("p"), SenderAddress: "a:1", SenderId: "s"},
		{
			Shard: math.MaxUint32, Token: math.MaxUint64, Number: math.MaxUint64, Entity: long, Type: long, Payload: []byte(long),
			SenderAddress: long, SenderId: long, Delivery: math.MaxUint64, Again: true, Origin: math.MaxUint64,
			Header: map[string]string{"": "", "key": long, long: "value"},
		},
	} {
		require.LessOrEqual(t, proto.Size(p), atMost(p))
		require.LessOrEqual(t, atMost(p), proto.Size(p)+200)
	}
}
