package distributeddata_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// Each of these was a nil pointer dereference, in the caller or reported as a panic of modify.
func TestNil_ArgumentsAreInvalid(t *testing.T) {
	_, err := distributeddata.New(nil, distributeddata.Config{MinMembers: -1})
	require.ErrorIs(t, err, distributeddata.ErrInvalid)
	require.ErrorContains(t, err, "no actor system")
	require.ErrorContains(t, err, "MinMembers is -1")
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		ctx, dd, key := context.Background(), c.at(0), distributeddata.NewKey("k", crdt.GCounter{})
		_, err := key.Update(ctx, dd, nil)
		require.EqualError(t, err, "distributeddata: invalid argument: modify is nil")
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		err = distributeddata.Atomically(ctx, dd, nil)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)

		answers := make(chan error, 1)
		m := key.UpdateMessage(nil)
		m.Adapt = func(r *distributeddata.UpdateResponse[crdt.GCounter]) any {
			_, err := r.Result()
			answers <- err
			return nil
		}
		c.Member(0).System.Root.Send(dd.PID(), m)
		require.ErrorIs(t, <-answers, distributeddata.ErrInvalid)

		one := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
		for _, level := range []distributeddata.Consistency{distributeddata.Local,
			distributeddata.Majority} {
			_, err = key.Get(ctx, nil, level)
			require.EqualError(t, err, "distributeddata: invalid argument: the replicator is nil")
			_, err = key.Update(ctx, nil, one, level)
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
		}
		require.ErrorIs(t, distributeddata.Atomically(ctx, nil,
			func(*distributeddata.Tx) error { return nil }), distributeddata.ErrInvalid)
		require.ErrorIs(t, key.Delete(ctx, nil), distributeddata.ErrInvalid)
	})
}

// A process that was killed and its successor at the same address were listed twice.
func TestErrors_NameAnAddressOnce(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		old := c.Member(1)
		c.Crash(old)
		c.Start(old.Address)
		c.Net.Partition(addresses(c, 0), []string{old.Address, c.Member(2).Address})
		c.List([]*simnet.Member{c.Member(0)}, c.Live())
		synctest.Wait()
		err := c.count(0, 1, distributeddata.Majority)
		q, ok := errors.AsType[*distributeddata.QuorumError](err)
		require.True(t, ok, "%v", err)
		require.ElementsMatch(t, []string{"node-1:1", "node-2:1"}, q.Missing)
	})
}
