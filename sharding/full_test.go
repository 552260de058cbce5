package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// At the bound of Buffer each way to send is refused alike: each refused message is counted once,
// and is either answered with ErrBufferFull or a dead letter.
func TestBuffer_RefusedMessagesAreCountedOnce(t *testing.T) {
	const some = 5
	text := wrapperspb.String("note")
	var asker *actor.PID
	ways := map[string]func(n *node) error{
		"Tell": func(n *node) error { return n.region.Ref("x").Tell(text) },
		"Ask": func(n *node) error {
			_, err := n.ask("x", "note", time.Second)
			return err
		},
		"Request": func(n *node) error {
			res, err := n.System.Root.RequestFuture(asker, "request", time.Second).Result()
			require.NoError(t, err)
			err, _ = res.(error)
			return err
		},
		"Envelope": func(n *node) error {
			n.System.Root.Send(n.region.PID(), &sharding.Envelope{ID: "x", Message: text})
			return nil
		},
		"Deliver": func(n *node) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return n.region.Ref("x").Deliver(ctx, text)
		},
	}
	// An eighth of Buffer may wait for one shard, and so many deliveries.
	for buffer, filled := range map[int]int{80: 10, 1: 1} {
		for way, send := range ways {
			t.Run(fmt.Sprintf("%s of %d", way, buffer), func(t *testing.T) {
				cfg := func(int) sharding.Config {
					return sharding.Config{Type: "cart", Shards: 16, Buffer: buffer}
				}
				run(t, 1, options{cfg: cfg}, func(c *testCluster) {
					n := c.node(0)
					asker = n.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
						if ctx.Message() == "request" {
							ctx.Respond(n.region.Ref("x").Request(ctx, text))
						}
					}))
					defer n.System.Root.Stop(asker)
					n.store.away(true)
					time.Sleep(30 * time.Second) // no shard is active any more
					ended, cancel := context.WithCancel(context.Background())
					defer cancel()
					for range filled {
						require.NoError(t, n.region.Ref("x").Tell(text))
						go func() { _ = n.region.Ref("x").Deliver(ended, text) }()
					}
					time.Sleep(time.Second)
					require.Zero(t, n.region.Stats().Refused)
					dead, answered := deadLetters(n.System), 0
					for range some {
						if err := send(n); err != nil {
							require.ErrorIs(t, err, sharding.ErrBufferFull)
							answered++
						}
					}
					time.Sleep(time.Second)
					require.Equal(t, uint64(some), n.region.Stats().Refused)
					require.Equal(t, some, answered+int(dead.Load()))
				})
			})
		}
	}
}
