//go:build unix

package distributeddata_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

var restEntries = flag.Int("rest", 2_000,
	"entries of TestExpiry_CostAtRest; with a million its bound on processor time is checked too")

// rest is the cost of five minutes at rest for two members.
type rest struct {
	cpu             time.Duration
	messages, bytes uint64
	memory          uint64 // per entry, of both
}

// Entries that expire cost members at rest no messages and no noticeable processor time. (Virtual
// time has no pauses, so processor time is all there is.)
//
//	go test ./distributeddata -run TestExpiry_CostAtRest -v -rest 1000000
func TestExpiry_CostAtRest(t *testing.T) {
	costs := map[bool]rest{}
	for _, expires := range []bool{false, true} {
		costs[expires] = atRest(t, expires)
		t.Logf("%d entries, expiry %v: %+v", *restEntries, expires, costs[expires])
	}
	without, with := costs[false], costs[true]
	require.LessOrEqual(t, with.messages, without.messages+without.messages/100)
	require.LessOrEqual(t, with.bytes, without.bytes+without.bytes/100)
	if *restEntries >= 1_000_000 {
		require.LessOrEqual(t, with.cpu, without.cpu+without.cpu/20+5*time.Minute/2000,
			"of 5 % of what it is, or of a core in 2000")
	}
}

func atRest(t *testing.T, expires bool) (cost rest) {
	cfg := distributeddata.Config{MaxEntries: 2_000_000, LogBytes: 1 << 20}
	if expires {
		cfg.Expiry = map[string]time.Duration{"session-*": time.Hour}
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run(t, 2, cfg, func(c *cluster) {
		const some = 500
		for i := 0; i < *restEntries; i += some {
			require.NoError(t, distributeddata.Atomically(context.Background(), c.at(0),
				func(tx *distributeddata.Tx) error {
					for j := i; j < min(i+some, *restEntries); j++ {
						distributeddata.NewKey(fmt.Sprintf("session-%016d", j),
							crdt.LWWRegister[string]{}).In(tx).Set(tx.Writer, "x")
					}
					return nil
				}, distributeddata.All))
		}
		time.Sleep(time.Minute)
		var after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&after)
		cost.memory = (after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)) / uint64(
			*restEntries)
		sent, cpu := c.at(0).Status().Traffic(), used()
		time.Sleep(5 * time.Minute)
		cost.cpu = used() - cpu
		now := c.at(0).Status().Traffic()
		cost.messages, cost.bytes = now.Messages-sent.Messages, now.Bytes-sent.Bytes
		require.Equal(t, *restEntries, c.at(1).Status().Keys)
		require.Zero(t, c.at(0).Status().Touches+c.at(1).Status().Touches)
	})
	return cost
}
