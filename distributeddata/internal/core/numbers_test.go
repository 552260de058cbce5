//go:build unix

package core

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// These tests measure how long it takes, in virtual time, until all replicas have what was missed.
// Heartbeats are a second apart.

// until advances the time until all replicas are byte-equal, and returns how long that took.
func (p *pump) until(t *testing.T) time.Duration {
	t.Helper()
	began := p.now
	for !p.equal() {
		require.Less(t, p.now.Sub(began), time.Minute, "never equal")
		p.now = p.now.Add(10 * time.Millisecond)
		p.wake()
	}
	for _, c := range p.cores[1:] {
		require.True(t, bytes.Equal(stateBytes(p.cores[0]), stateBytes(c)))
	}
	return p.now.Sub(began)
}

func quantiles(took []time.Duration) (median, p99, longest time.Duration) {
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}

func TestNumbers_ConvergenceAfterAPartition(t *testing.T) {
	const replicas, partitions = 10, 300
	p := newPump(replicas)
	p.loss = 0.01
	for i, c := range p.cores { // the heartbeats of different members are not synchronized
		c.rhythm.at = p.now.Add(time.Duration(i) * time.Second / replicas)
	}
	var took []time.Duration
	for i := range partitions {
		side := p.rand.Perm(replicas)
		size := 1 + p.rand.IntN(replicas-1)
		p.cut = func(from, to int) bool {
			return slices.Index(side, from) < size != (slices.Index(side, to) < size)
		}
		for j := range 10 {
			p.put(p.rand.IntN(replicas), fmt.Sprintf("key-%02d", p.rand.IntN(30)), fmt.Sprint(i, j))
			p.pass(100 * time.Millisecond)
		}
		p.cut = nil
		took = append(took, p.until(t))
	}
	median, p99, longest := quantiles(took)
	t.Logf("%d replicas, 1 %% loss, %d partitions of a second: equal after %v in the median, %v at the 99th percentile, %v at most", replicas, partitions, median, p99, longest)
	require.LessOrEqual(t, p99, 2*time.Second)
	require.Less(t, median, 900*time.Millisecond, "a heartbeat's time")
}

func TestNumbers_RepairOfOneLostPush(t *testing.T) {
	const replicas, losses = 3, 100
	p := newPump(replicas)
	p.fill(1000, 10)
	var took []time.Duration
	for i := range losses {
		p.pass(time.Duration(p.rand.IntN(10)) * 100 * time.Millisecond)
		p.put(i%replicas, "key", fmt.Sprint(i))
		p.take(i%replicas, p.cores[i%replicas].Step(p.now, Wake{}))
		lost := slices.IndexFunc(p.box, func(m mail) bool {
			return m.send.Manifest == wire.ReplicatorPush
		})
		require.GreaterOrEqual(t, lost, 0)
		p.box = slices.Delete(p.box, lost, lost+1)
		p.deliver()
		took = append(took, p.until(t))
	}
	median, p99, longest := quantiles(took)
	t.Logf("one lost push, %d times: repaired after %v in the median, %v at the 99th percentile, %v at most", losses, median, p99, longest)
	require.LessOrEqual(t, p99, 2*time.Second, "two heartbeats")
}
