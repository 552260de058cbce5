package sharding

import (
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// askStats queries what a member runs.
func (c *control) askStats(of membership.Member, number uint64) {
	c.binding.tell(c.view, member(of), wire.ShardingAskStats, &pb.ShardingAskStats{Query: number})
}

// onStats answers the query of a member, or processes the answer to a query of this one.
func (c *control) onStats(from membership.Member, manifest wire.Manifest, payload []byte) {
	if manifest == wire.ShardingStats {
		number, m, err := decodeStats(payload)
		if err != nil {
			c.binding.ignore(manifest, err)
			return
		}
		c.answered(from, number, m)
		return
	}
	var in pb.ShardingAskStats
	if err := proto.Unmarshal(payload, &in); err != nil {
		c.binding.ignore(manifest, err)
		return
	}
	c.binding.tell(c.view, member(from), wire.ShardingStats,
		encodeStats(in.Query, c.binding.memberStats("")))
}

func encodeStats(number uint64, m MemberStats) *pb.ShardingStats {
	return &pb.ShardingStats{
		Query: number, Active: uint32(m.Shards), HandingOff: uint32(m.HandingOff),
		Entities: uint64(m.Entities), Waiting: uint64(m.Waiting),
	}
}

func decodeStats(payload []byte) (number uint64, m MemberStats, err error) {
	var in pb.ShardingStats
	if err := proto.Unmarshal(payload, &in); err != nil {
		return 0, m, err
	}
	m = MemberStats{
		Shards: int(min(in.Active, maxShards+1)), HandingOff: int(min(in.HandingOff, maxShards+1)),
		Entities: int(min(in.Entities, maxEntities+1)),
		Waiting:  int(min(in.Waiting, maxEntities+1)),
	}
	return in.Query, m, m.fits()
}
