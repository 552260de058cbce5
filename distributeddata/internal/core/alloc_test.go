//go:build unix && !race

package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// One update of one key at one of three replicas is pushed alone, applied and acknowledged by both
// others. The test measures the allocations and traffic of all three together. The network of this
// test makes ten of the allocations.
func TestCost_OneUpdate(t *testing.T) {
	for _, c := range []struct {
		name          string
		op            op
		allocs, bytes float64
	}{
		{"counter", count("c", "k", 1), 70, 170},
		{"set", add("s", "x"), 62, 115},
	} {
		p := newPump(3)
		one := func() {
			p.take(0, p.cores[0].Step(p.now, Update{ID: 1, Modify: func(t *history.Txn) error {
				return perform(t, []op{c.op})
			}}))
			p.take(0, p.cores[0].Step(p.now, Wake{}))
			p.deliver()
		}
		for range 300 { // until logs and hashes have grown to their size
			one()
		}
		clear(p.of)
		allocs := testing.AllocsPerRun(200, one)
		require.LessOrEqual(t, allocs, c.allocs, c.name)
		require.LessOrEqual(t, float64(p.all().bytes)/201, c.bytes, c.name)
		t.Logf("%s: %v allocations, %d bytes", c.name, allocs, p.all().bytes/201)
	}
}

// Updates that share a commit change the keys, the vector, the log and the fingerprint once. What
// is left is the value of each, which is returned, and its answer.
func TestCost_UpdatesThatShareACommit(t *testing.T) {
	p := newPump(3)
	many := func(n int) func() {
		return func() {
			for i := range n {
				p.take(0, p.cores[0].Step(p.now, Update{ID: uint64(i + 1), More: i+1 < n,
					Modify: func(t *history.Txn) error {
						return perform(t, []op{count("c", "k", 1)})
					}}))
			}
			p.take(0, p.cores[0].Step(p.now, Wake{}))
			p.deliver()
		}
	}
	for range 300 {
		many(64)()
	}
	alone := testing.AllocsPerRun(100, many(1))
	clear(p.of)
	each := testing.AllocsPerRun(100, many(64)) / 64
	bytes := float64(p.all().bytes) / 101 / 64
	t.Logf("%v allocations alone, %v and %v bytes of 64", alone, each, bytes)
	require.LessOrEqual(t, each, 17.)
	require.LessOrEqual(t, bytes, 16.)
}
