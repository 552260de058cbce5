package singleton_test

import (
	"math"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// A member that claims the instance and does not host it, or says that it hosts it, stops it for a
// while, and not for as long as it lives.
func TestLiar_ClaimsSilenceASingletonForAWhile(t *testing.T) {
	for name, token := range map[string]uint64{"claims": 0, "and says that it hosts": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.found(c.node(0), 20*time.Second)
				liar := c.node(2)
				view := liar.members().View()
				word := &pb.SingletonWord{Name: "jobs", Sequence: math.MaxUint64, Claims: true,
					Token: token}
				payload, err := proto.Marshal(&pb.SingletonNews{Version: math.MaxUint64, Count: 1,
					Whole: true, Words: []*pb.SingletonWord{word}})
				require.NoError(t, err)
				from := wire.Header{Cluster: view.Cluster, Member: view.Self.ID,
					From: view.Self.Incarnation}
				answered, asked := 0, 0
				for begun := time.Now(); time.Since(begun) < 30*time.Minute; {
					for i := range 2 {
						liar.System.Root.Send(actor.NewPID(c.Member(i).Address,
							"concord-singletons"), wire.Seal(from, wire.SingletonNews, payload))
					}
					if time.Sleep(500 * time.Millisecond); asked%4 == 0 {
						if _, err := c.node(0).ask("who", 400*time.Millisecond); err == nil {
							answered++
						}
					}
					asked++
				}
				t.Logf("%d of %d answered", answered, asked/4)
				require.Greater(t, answered, asked/4*8/10)
			})
		})
	}
}
