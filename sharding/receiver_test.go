package sharding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// The receiver of a member accepts a message once, only from a member of its view in its
// incarnation, for its own incarnation, under the tenure of the shard and with a number that rises.
func TestReceiver_AcceptsNothingButMessagesOfItsPeers(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		sender, host := c.node(0), c.node(1)
		id := "x"
		for k := 0; sender.region.Status().Shards[sender.region.Ref(
			id).Shard()].Home != host.ID; k++ {
			id = fmt.Sprint("e", k)
		}
		seen := make(chan simnet.Packet, 1)
		c.Net.Observe(func(p simnet.Packet) {
			if e, ok := p.Message.(*pb.Envelope); ok && e.Manifest == uint32(wire.ShardingData) {
				select {
				case seen <- p:
				default:
				}
			}
		})
		sender.tell(id, "genuine")
		first := <-seen
		time.Sleep(100 * time.Millisecond)
		env, receiver := first.Message.(*pb.Envelope), first.Target
		var in pb.ShardingData
		require.NoError(t, proto.Unmarshal(env.Payload, &in))
		require.Len(t, in.Parcels, 1)
		text, err := proto.Marshal(wrapperspb.String("forged"))
		require.NoError(t, err)
		next := in.Parcels[0].Number + 1
		send := func(edit func(*pb.Envelope, *pb.ShardingParcel)) {
			e, p := proto.CloneOf(env), proto.CloneOf(in.Parcels[0])
			p.Number, p.Payload, e.Payload = next, text, nil
			edit(e, p)
			if e.Payload == nil {
				e.Payload, err = proto.Marshal(&pb.ShardingData{Parcels: []*pb.ShardingParcel{p}})
				require.NoError(t, err)
			}
			sender.System.Root.Send(actor.NewPID(host.Address, receiver), e)
			time.Sleep(100 * time.Millisecond)
		}
		for name, edit := range map[string]func(*pb.Envelope, *pb.ShardingParcel){
			"another cluster": func(e *pb.Envelope, _ *pb.ShardingParcel) {
				e.Cluster += "x"
			},
			"a stranger": func(e *pb.Envelope, _ *pb.ShardingParcel) {
				e.Member = "stranger"
			},
			"an old incarnation":     func(e *pb.Envelope, _ *pb.ShardingParcel) { e.From-- },
			"for an old incarnation": func(e *pb.Envelope, _ *pb.ShardingParcel) { e.To-- },
			"another version": func(e *pb.Envelope, _ *pb.ShardingParcel) {
				e.Version++
			},
			"another manifest": func(e *pb.Envelope, _ *pb.ShardingParcel) {
				e.Manifest = uint32(wire.ShardingPause)
			},
			"no message": func(e *pb.Envelope, _ *pb.ShardingParcel) {
				e.Payload = []byte{0x0a, 0xff, 0x01}
			},
			"an earlier tenure": func(_ *pb.Envelope, p *pb.ShardingParcel) { p.Token-- },
			"a tenure that is too large": func(_ *pb.Envelope, p *pb.ShardingParcel) {
				p.Token = 1 << 63
			},
			"a repeated number": func(_ *pb.Envelope, p *pb.ShardingParcel) { p.Number-- },
			"no number": func(_ *pb.Envelope, p *pb.ShardingParcel) {
				p.Number = 0
			},
			"another shard": func(_ *pb.Envelope, p *pb.ShardingParcel) {
				p.Shard = 1 << 16
			},
			"a shard too many": func(_ *pb.Envelope, p *pb.ShardingParcel) {
				p.Shard = 16
			},
		} {
			dropped, dead := host.region.Stats().Dropped, deadLetters(host.System)
			send(edit)
			require.Equal(t, []string{"genuine"}, c.alive.notes(id+" "), name)
			switch name {
			case "an earlier tenure":
				require.Equal(t, dropped+1, host.region.Stats().Dropped)
				require.EqualValues(t, 1, dead.Load())
			case "a repeated number":
				require.Equal(t, dropped+1, host.region.Stats().Dropped)
				require.Zero(t, dead.Load())
			}
		}
		sender.System.Root.Send(actor.NewPID(host.Address, receiver),
			wrapperspb.String("no envelope"))

		// A message that no entity of the shard can have counts as received, and no more.
		other := "e0"
		for k := 0; sender.region.Ref(other).Shard() == sender.region.Ref(id).Shard(); k++ {
			other = fmt.Sprint("e", k)
		}
		for name, bad := range map[string]string{"an id that is too long": strings.Repeat("x", 513),
			"control characters": "a\x00b", "an entity of another shard": other} {
			ignored, alive := host.region.Stats().Ignored, c.alive.count()
			send(func(_ *pb.Envelope, p *pb.ShardingParcel) { p.Entity = bad })
			require.Equal(t, ignored+1, host.region.Stats().Ignored, name)
			require.Equal(t, alive, c.alive.count(), name)
			require.Empty(t, c.alive.notes(bad+" "), name)
			next++
		}
		send(func(*pb.Envelope, *pb.ShardingParcel) {})
		require.Equal(t, []string{"genuine", "forged"}, c.alive.notes(id+" "),
			"the forgery itself is good")
	})
}
