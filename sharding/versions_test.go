package sharding_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// A member of a later version sends messages that this one does not know, to every component, and
// known ones with fields that it does not know. It ignores them: calls are answered, writes reach
// their majority, and no member is dropped.
func TestVersions_UnknownMessagesAndFieldsAreIgnored(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		later, present := c.node(0), c.node(1)
		var mu sync.Mutex
		targets := map[string]*pb.Envelope{} // of the protocols, by actor
		c.Net.Observe(func(p simnet.Packet) {
			e, ok := p.Message.(*pb.Envelope)
			if ok && p.From == later.Address && p.To == present.Address {
				mu.Lock()
				defer mu.Unlock()
				targets[p.Target] = e
			}
		})
		time.Sleep(time.Minute)
		mu.Lock()
		sent := maps.Clone(targets)
		mu.Unlock()
		reached := map[string]bool{}
		ignored := present.region.Stats().Ignored
		for target, e := range sent {
			for component, last := range map[string]uint32{"concord-membership": 9,
				"concord-replicator-": 29, "concord-singleton": 49, "concord-sharding-": 69} {
				if !strings.HasPrefix(target, component) {
					continue
				}
				reached[component] = true
				to := actor.NewPID(present.Address, target)
				known := proto.CloneOf(e)
				known.Payload = protowire.AppendTag(known.Payload, 1000, protowire.BytesType)
				known.Payload = protowire.AppendBytes(known.Payload, []byte("later"))
				later.System.Root.Send(to, known)
				unknown := proto.CloneOf(e)
				unknown.Manifest, unknown.Payload = last, []byte("of a later version")
				later.System.Root.Send(to, unknown)
				wrong := proto.CloneOf(e)
				wrong.Version = wire.Version + 1
				later.System.Root.Send(to, wrong)
			}
		}
		require.Equal(t, []string{"concord-membership", "concord-replicator-", "concord-sharding-",
			"concord-singleton"}, slices.Sorted(maps.Keys(reached)))
		time.Sleep(time.Second)
		require.Greater(t, present.region.Stats().Ignored, ignored)
		c.settled(20*time.Second, c.all()...)
		for _, n := range c.all() {
			_, err := n.ask("after", "who", 5*time.Second)
			require.NoError(t, err)
		}
	})
}
