package sharding_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// observe returns the last packet with a message of the protocol, after some beats.
func (c *testCluster) observe(m wire.Manifest) *atomic.Pointer[simnet.Packet] {
	c.t.Helper()
	last := &atomic.Pointer[simnet.Packet]{}
	c.Net.Observe(func(p simnet.Packet) {
		if e, ok := p.Message.(*pb.Envelope); ok && e.Manifest == uint32(m) {
			last.Store(&p)
		}
	})
	time.Sleep(2 * time.Second)
	require.NotNil(c.t, last.Load())
	return last
}

// A table is accepted only from a member of the view in its incarnation, for this incarnation, and
// only as far as its entries can be used.
func TestTable_IsAcceptedFromMembersOnly(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		coordinator, host := c.node(0), c.node(1)
		shard := 0
		for host.region.Status().Shards[shard].Home != host.ID {
			shard++
		}
		table := c.observe(wire.ShardingTable).Load()
		env, control := table.Message.(*pb.Envelope), table.Target
		require.Equal(t, coordinator.ID, env.Member)
		var said pb.ShardingTable
		require.NoError(t, proto.Unmarshal(env.Payload, &said))
		send := func(edit func(*pb.Envelope, *pb.ShardingTable)) {
			e := proto.CloneOf(env)
			e.Payload = nil
			table := &pb.ShardingTable{
				Epoch: said.Epoch, N: said.N, Sum: said.Sum,
				Members: []*pb.ShardingMember{{Id: coordinator.ID, Incarnation: env.From,
					Address: coordinator.Address}},
				Entries: []*pb.ShardingEntry{{Shard: uint32(shard), Epoch: said.Epoch,
					N: said.N + 1000}},
			}
			edit(e, table)
			if e.Payload == nil {
				var err error
				e.Payload, err = proto.Marshal(table)
				require.NoError(t, err)
			}
			coordinator.System.Root.Send(actor.NewPID(host.Address, control), e)
			time.Sleep(100 * time.Millisecond)
		}
		home := func() string { return host.region.Status().Shards[shard].Home }
		for name, edit := range map[string]func(*pb.Envelope, *pb.ShardingTable){
			"another cluster": func(e *pb.Envelope, _ *pb.ShardingTable) {
				e.Cluster += "x"
			},
			"a stranger": func(e *pb.Envelope, _ *pb.ShardingTable) {
				e.Member = "stranger"
			},
			"an old incarnation":     func(e *pb.Envelope, _ *pb.ShardingTable) { e.From-- },
			"for an old incarnation": func(e *pb.Envelope, _ *pb.ShardingTable) { e.To-- },
			"another version":        func(e *pb.Envelope, _ *pb.ShardingTable) { e.Version++ },
			"a cut payload": func(e *pb.Envelope, _ *pb.ShardingTable) {
				e.Payload = []byte{0x2a, 0xff, 0x01}
			},
			"a coordinator that ended": func(_ *pb.Envelope, m *pb.ShardingTable) { m.Epoch-- },
			"a shard too many": func(_ *pb.Envelope, m *pb.ShardingTable) {
				m.Entries[0].Shard = 16
			},
			"a shard out of range": func(_ *pb.Envelope, m *pb.ShardingTable) {
				m.Entries[0].Shard = 1 << 31
			},
			"a token out of range": func(_ *pb.Envelope, m *pb.ShardingTable) {
				m.Entries[0].Epoch = 1 << 63
			},
			"a member that is absent": func(_ *pb.Envelope, m *pb.ShardingTable) {
				m.Entries[0].Home = 7
			},
			"an earlier assignment": func(_ *pb.Envelope, m *pb.ShardingTable) {
				m.Entries[0].N = 0
			},
		} {
			send(edit)
			require.Equal(t, host.ID, home(), name)
		}
		require.Positive(t, host.region.Stats().Ignored)
		send(func(*pb.Envelope, *pb.ShardingTable) {})
		require.Equal(t, coordinator.ID, home(), "the forgery itself is good")
		c.settled(20*time.Second, c.all()...)
	})
}
