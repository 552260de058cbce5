package sharding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The defaults are those that the comments of Config name.
func TestConfig_Defaults(t *testing.T) {
	require.Equal(t, Config{
		Type: "cart", Shards: 256, Settle: 2 * time.Second, HandOff: 10 * time.Second,
		OrphanAfter: 5 * time.Second, MaxMoves: 25, Spread: 1, StableAfter: 10 * time.Second,
		Buffer: 100_000, BufferBytes: 64 << 20, Stash: 1000,
		LeasePrefix: "shard-cart-",
	}, Config{Type: "cart"}.withDefaults())
	for shards, moves := range map[int]int{1: 1, 19: 1, 20: 2, 500: 50, 4096: 50} {
		require.Equal(t, moves, Config{Shards: shards}.withDefaults().MaxMoves)
	}
	l := binding{cfg: Config{Type: "cart"}.withDefaults()}
	require.Equal(t, "shard-cart-7", l.leaseName(7))
	require.Equal(t, "shard-cart-coordinator", l.coordinatorLease())
}
