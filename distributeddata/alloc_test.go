//go:build !race

package distributeddata_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/ask"
)

// The allocations of a call, including the actor's work; by message, including those of
// ask.Request.
func TestCost_Calls(t *testing.T) {
	system, dd, stop := startMember()
	defer stop()
	ctx := context.Background()
	key := distributeddata.NewKey("key", crdt.PNCounter{})
	add := func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }
	expires := distributeddata.NewKey("expires", crdt.PNCounter{})
	_, err := expires.Update(ctx, dd, add, local, distributeddata.ExpireAfter(time.Hour))
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		allocs float64
		call   func() error
	}{
		{"update of a counter", 30, func() error {
			_, err := key.Update(ctx, dd, add, local)
			return err
		}},
		{"the same by message", 36, func() error {
			_, err := ask.Request(ctx, system, dd.PID(), key.UpdateMessage(add, local))
			return err
		}},
		{"local read by message", 14, func() error {
			_, err := ask.Request(ctx, system, dd.PID(), key.GetMessage())
			return err
		}},
		{"majority read", 17, func() error {
			_, err := key.Get(ctx, dd, distributeddata.Majority)
			return err
		}},
		{"local read", 0, func() error { _, err := key.Get(ctx, dd); return err }},
		{"local read of an entry that expires", 0, func() error {
			_, err := expires.Get(ctx, dd)
			return err
		}},
	} {
		for range 300 { // until logs have grown to their size
			require.NoError(t, c.call())
		}
		var err error
		allocs := testing.AllocsPerRun(1000, func() {
			if e := c.call(); e != nil {
				err = e
			}
		})
		require.NoError(t, err)
		require.LessOrEqual(t, allocs, c.allocs, c.name)
		t.Logf("%s: %v allocations", c.name, allocs)
	}
}
