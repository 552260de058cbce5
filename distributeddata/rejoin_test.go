package distributeddata_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
)

// Members add to a counter while one is cut off, on a provider that bans ids as Proto.Actor's do.
// Its own additions are present after the split has healed, through the same handle.
func TestRejoin_WhatWasAddedAloneIsThere(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		dd := testkit.Each(c, func(m *testkit.Member) (*distributeddata.Replicator, error) {
			return distributeddata.New(m.System, distributeddata.Config{MinMembers: 3})
		})
		c.Ready()
		counter := distributeddata.NewKey("counter", crdt.GCounter{})
		handles := []*distributeddata.Replicator{dd.At(0), dd.At(1), dd.At(2)}
		var added atomic.Int64
		add := func() {
			for _, r := range handles {
				_, err := counter.Update(t.Context(), r,
					func(w *crdt.Writer, v *crdt.GCounter) error {
						v.Add(w, 1)
						return nil
					}, local)
				if err == nil {
					added.Add(1)
				}
			}
		}
		for range 100 {
			add()
			c.Advance(200 * time.Millisecond)
		}
		c.Partition([]int{0, 1}, []int{2})
		for range 30 {
			add()
			c.Advance(200 * time.Millisecond)
		}
		require.Error(t, c.Whole())
		c.Heal()
		for range 60 {
			add() // waits between two incarnations
			c.Advance(200 * time.Millisecond)
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if err := c.Whole(); err != nil {
				return err
			}
			for i, r := range handles {
				v, err := counter.Get(t.Context(), r)
				if err != nil || int64(v.Value()) != added.Load() {
					return fmt.Errorf("member %d counts %d, added were %d: %w", i, v.Value(),
						added.Load(), err)
				}
				if r != dd.At(i) {
					return fmt.Errorf("member %d has another handle", i)
				}
			}
			return nil
		})
		require.EqualValues(t, 3*190, added.Load())
	}, testkit.Provider(500*time.Millisecond, 2*time.Second), testkit.Rejoin(time.Second))
}
