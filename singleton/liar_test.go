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
				lie := c.liar(2, token)
				answered, asked := 0, 0
				for begun := time.Now(); time.Since(begun) < 30*time.Minute; {
					lie()
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

// liar returns a function that says to the members before n that n claims the instance, and with a
// token that it hosts it.
func (c *testCluster) liar(n int, token uint64) func() {
	liar := c.node(n)
	view := liar.members().View()
	word := &pb.SingletonWord{Name: "jobs", Sequence: math.MaxUint64, Claims: true, Token: token}
	payload, err := proto.Marshal(&pb.SingletonNews{Version: math.MaxUint64, Count: 1, Whole: true,
		Words: []*pb.SingletonWord{word}})
	require.NoError(c.t, err)
	from := wire.Header{Cluster: view.Cluster, Member: view.Self.ID, From: view.Self.Incarnation}
	return func() {
		for i := range n {
			liar.System.Root.Send(actor.NewPID(c.Member(i).Address, "concord-singletons"),
				wire.Seal(from, wire.SingletonNews, payload))
		}
	}
}

// While an elected member leaves the lease free, the next one tries after StoreTimeout and five
// seconds, and does not count on that member for ten seconds, doubled up to five minutes.
func TestLiar_TheNextMemberTriesWhenPromised(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		lie := c.liar(2, 0)
		var gaps, hosted []time.Duration
		alive, since := true, time.Now()
		for begun := time.Now(); time.Since(begun) < time.Hour; time.Sleep(500 * time.Millisecond) {
			lie()
			if now := c.alive.count() > 0; now != alive {
				if took := time.Since(since); alive {
					hosted = append(hosted, took)
				} else {
					gaps = append(gaps, took)
				}
				alive, since = now, time.Now()
			}
		}
		for _, gap := range gaps {
			require.Equal(t, 15*time.Second, gap)
		}
		require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second,
			80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute}, hosted[1:8])
	})
}
