package sharding_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// A report counts only from a member of the view in its incarnation, for this incarnation, as the
// answer to the latest table of this coordinator. No number in it silences a member or moves a
// shard.
func TestReport_CountsFromMembersOnlyAndInOrder(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		coordinator, host := c.node(0), c.node(1)
		last := c.observe(wire.ShardingReport)
		env := last.Load().Message.(*pb.Envelope)
		require.Equal(t, host.ID, env.Member)
		// send sends a report that says that the host leaves, edited, between two beats.
		send := func(edit func(*pb.Envelope, *pb.ShardingReport)) {
			sent := last.Load().Message.(*pb.Envelope)
			e, forged := proto.CloneOf(sent), &pb.ShardingReport{}
			require.NoError(t, proto.Unmarshal(sent.Payload, forged))
			e.Payload, forged.Leaving = nil, true
			edit(e, forged)
			if e.Payload == nil {
				var err error
				e.Payload, err = proto.Marshal(forged)
				require.NoError(t, err)
			}
			host.System.Root.Send(actor.NewPID(coordinator.Address, last.Load().Target), e)
			time.Sleep(600 * time.Millisecond)
		}
		homes := func() map[string]int {
			out := map[string]int{}
			for _, s := range coordinator.region.Status().Shards {
				out[s.Home]++
			}
			return out
		}
		before := homes()
		for name, edit := range map[string]func(*pb.Envelope, *pb.ShardingReport){
			"another cluster":        func(e *pb.Envelope, _ *pb.ShardingReport) { e.Cluster += "x" },
			"a stranger":             func(e *pb.Envelope, _ *pb.ShardingReport) { e.Member = "m7" },
			"an old incarnation":     func(e *pb.Envelope, _ *pb.ShardingReport) { e.From-- },
			"for an old incarnation": func(e *pb.Envelope, _ *pb.ShardingReport) { e.To-- },
			"another version":        func(e *pb.Envelope, _ *pb.ShardingReport) { e.Version++ },
			"a cut payload": func(e *pb.Envelope, _ *pb.ShardingReport) {
				e.Payload = []byte{0x2a, 0xff, 0x01}
			},
			"the last one again":   func(*pb.Envelope, *pb.ShardingReport) {},
			"overtaken":            func(_ *pb.Envelope, m *pb.ShardingReport) { m.Beat -= 3 },
			"never asked for":      func(_ *pb.Envelope, m *pb.ShardingReport) { m.Beat += 2 },
			"a huge number":        func(_ *pb.Envelope, m *pb.ShardingReport) { m.Beat = 1<<64 - 1 },
			"an earlier epoch":     func(_ *pb.Envelope, m *pb.ShardingReport) { m.Epoch--; m.Beat += 2 },
			"a later epoch":        func(_ *pb.Envelope, m *pb.ShardingReport) { m.Epoch++ },
			"a shard out of range": unnumbered(&pb.ShardingTenure{Shard: 1 << 31, Token: 1}),
			"a token out of range": unnumbered(&pb.ShardingTenure{Shard: 1, Token: 1 << 63}),
			"shards of another member": func(_ *pb.Envelope, m *pb.ShardingReport) {
				m.Beat, m.Leaving, m.Active = 0, false, nil
				for n := range uint32(16) {
					m.Active = append(m.Active, &pb.ShardingTenure{Shard: n, Token: 1<<63 - 1})
				}
			},
			"shards that do not exist": func(_ *pb.Envelope, m *pb.ShardingReport) {
				m.Beat, m.Leaving = 0, false
				for n := range uint32(1000) {
					m.Active = append(m.Active, &pb.ShardingTenure{Shard: 16 + n, Token: 1})
				}
			},
			"more agreed than assigned": func(_ *pb.Envelope, m *pb.ShardingReport) {
				m.Beat, m.Leaving, m.N, m.Sum = 0, false, 1<<64-1, m.Sum+1
			},
		} {
			send(edit)
			require.Equal(t, before, homes(), name)
		}
		require.Positive(t, coordinator.region.Stats().Ignored)
		time.Sleep(10 * time.Second)
		require.Equal(t, before, homes(), "the host is still heard")
		send(func(_ *pb.Envelope, m *pb.ShardingReport) { m.Beat = 0 })
		require.Less(t, homes()[host.ID], before[host.ID], "the forgery itself is good")
		c.settled(20*time.Second, c.all()...)
	})
}

// unnumbered returns an edit of a report that would count, but for a tenure in it.
func unnumbered(has *pb.ShardingTenure) func(*pb.Envelope, *pb.ShardingReport) {
	return func(_ *pb.Envelope, m *pb.ShardingReport) {
		m.Beat, m.Active = 0, append(m.Active, has)
	}
}
