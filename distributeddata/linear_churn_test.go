package distributeddata_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/testkit/history"
)

// churn is a cluster whose members come and go while clients use the running ones.
type churn struct {
	*cluster
	random *rand.Rand
	mu     sync.Mutex
	usable []*distributeddata.Replicator
	came   int
	went   int
}

// any returns a replicator of a member that runs, or did a moment ago.
func (c *churn) any(r *rand.Rand) *distributeddata.Replicator {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usable[r.IntN(len(c.usable))]
}

func (c *churn) use(members []*simnet.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usable = nil
	for _, m := range members {
		c.usable = append(c.usable, c.dd[m])
	}
}

// replace makes a member join, and another one go: in order, by a crash, or by a crash with a
// restart.
func (c *churn) replace() {
	next := c.Join()
	c.ready(next)
	c.use(c.Live())
	c.came++
	live := c.Live()
	victim := live[c.random.IntN(len(live))]
	switch c.random.IntN(3) {
	case 0:
		c.use(slices.DeleteFunc(live, func(m *simnet.Member) bool { return m == victim }))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(c.t, c.dd[victim].Close(ctx))
		c.Leave(victim)
	case 1:
		c.Crash(victim)
		c.Unlist(c.Live(), []*simnet.Member{victim})
	default:
		c.ready(c.Restart(victim))
		victim = c.Live()[0]
		c.Crash(victim)
		c.Unlist(c.Live(), []*simnet.Member{victim})
	}
	c.use(c.Live())
	c.went++
	for _, m := range c.Live() { // crashed members do not count any more
		for end := time.Now().Add(time.Minute); c.dd[m].Status().Counted != len(
			c.Live()); time.Sleep(100 * time.Millisecond) {
			require.True(c.t, time.Now().Before(end), "%v counts %d, missing %v", m,
				c.dd[m].Status().Counted, c.dd[m].Status().Missing)
		}
	}
}

// Increments at a majority and linearizable reads of counters are linearizable while members join,
// leave, crash and are replaced.
func TestQuorums_AreLinearizableWhereMembersComeAndGo(t *testing.T) {
	const members, keys, clients, each = 5, 4, 5, 40
	for round := range max(1, *quorumOperations/(keys*clients*each)) {
		t.Run(fmt.Sprint("round=", round), func(t *testing.T) {
			var rec history.Recorder[totalOp, uint64]
			cfg := distributeddata.Config{MinMembers: 4, ForgetAfter: time.Second,
				HeartbeatInterval: 200 * time.Millisecond}
			run(t, members, cfg, func(cl *cluster) {
				c := &churn{cluster: cl, random: rand.New(rand.NewPCG(uint64(round), 3))}
				c.Net.SetAll(simnet.Faults{Loss: 0.05, Jitter: 20 * time.Millisecond})
				c.use(c.Live())
				var working sync.WaitGroup
				for key := range keys {
					for client := range clients {
						r := rand.New(rand.NewPCG(uint64(round), uint64(100*key+client)))
						working.Go(func() {
							for range each {
								ctx, cancel := context.WithTimeout(context.Background(),
									time.Second)
								increment(ctx, &rec, c.any(r), clients*key+client,
									fmt.Sprint("key-", key), r)
								cancel()
								time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
							}
						})
					}
				}
				ended := make(chan struct{})
				go func() { working.Wait(); close(ended) }()
				for over := false; !over; {
					c.replace()
					select {
					case <-ended:
						over = true
					default:
					}
				}
				t.Logf("%d members came, and %d went", c.came, c.went)
				require.Greater(t, c.went, 1)
			})
			judge(t, total(), rec.Operations())
		})
	}
}

// increment increments a counter at a majority, or reads it.
func increment(ctx context.Context, rec *history.Recorder[totalOp, uint64],
	dd *distributeddata.Replicator, client int, key string, r *rand.Rand) {
	k := distributeddata.NewKey(key, crdt.GCounter{})
	if r.IntN(2) == 0 {
		op := rec.Begin(client, totalOp{key: key})
		_, err := k.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
			v.Add(w, 1)
			return nil
		}, distributeddata.Majority)
		finish(op, 0, err, false)
		return
	}
	op := rec.Begin(client, totalOp{key: key, read: true})
	v, err := k.Get(ctx, dd, distributeddata.Linearizable)
	finish(op, v.Value(), err, true)
}
