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
	_, err := distributeddata.New(nil, distributeddata.Config{MinMembers: -2})
	require.ErrorIs(t, err, distributeddata.ErrInvalid)
	require.ErrorContains(t, err, "no actor system")
	require.ErrorContains(t, err, "MinMembers is -2")
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		ctx, dd, key := context.Background(), c.at(0), distributeddata.NewKey("k", crdt.GCounter{})
		_, err := key.Update(ctx, dd, nil, local)
		require.EqualError(t, err, "distributeddata: invalid argument: modify is nil")
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		err = distributeddata.Atomically(ctx, dd, nil, local)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)

		answers := make(chan error, 1)
		m := key.UpdateMessage(nil, local)
		m.Adapt = func(r *distributeddata.UpdateResponse[crdt.GCounter]) any {
			_, err := r.Result()
			answers <- err
			return nil
		}
		c.Member(0).System.Root.Send(dd.PID(), m)
		require.ErrorIs(t, <-answers, distributeddata.ErrInvalid)

		one := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
		for _, level := range []distributeddata.Consistency{local,
			distributeddata.Majority} {
			_, err = key.Get(ctx, nil, level)
			require.EqualError(t, err, "distributeddata: invalid argument: the replicator is nil, or New has not made it")
			_, err = key.Update(ctx, nil, one, level)
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
		}
		require.ErrorIs(t, distributeddata.Atomically(ctx, nil,
			func(*distributeddata.Tx) error { return nil }, local), distributeddata.ErrInvalid)
		require.ErrorIs(t, key.Delete(ctx, nil, local), distributeddata.ErrInvalid)
	})
}

// Each of these was a nil pointer dereference, or waited until the end of its context.
func TestZero_ValuesAreInvalid(t *testing.T) {
	type set = distributeddata.ShardedSet[string]
	type users = distributeddata.ShardedMap[string, crdt.GCounter]
	one := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
	calls := func(r *distributeddata.Replicator, key distributeddata.Key[crdt.GCounter], s set,
		m users) map[string]func(context.Context) error {
		return map[string]func(context.Context) error{
			"Ready": r.Ready,
			"Close": r.Close,
			"Flush": func(ctx context.Context) error { return r.Flush(ctx) },
			"Get":   func(ctx context.Context) error { _, err := key.Get(ctx, r); return err },
			"Update": func(ctx context.Context) error {
				_, err := key.Update(ctx, r, one,
					local)
				return err
			},
			"Add":       func(ctx context.Context) error { return s.Add(ctx, r, "x", local) },
			"Remove":    func(ctx context.Context) error { return s.Remove(ctx, r, "x", local) },
			"Contains":  func(ctx context.Context) error { _, err := s.Contains(ctx, r, "x"); return err },
			"Clear":     func(ctx context.Context) error { return s.Clear(ctx, r, local) },
			"Map.Get":   func(ctx context.Context) error { _, err := m.Get(ctx, r, "x"); return err },
			"Map.Clear": func(ctx context.Context) error { return m.Clear(ctx, r, local) },
			"Map.Update": func(ctx context.Context) error {
				_, err := m.Update(ctx, r, "x", one, local)
				return err
			},
			"Map.Remove": func(ctx context.Context) error { return m.Remove(ctx, r, "x", local) },
			"Changes": func(ctx context.Context) (last error) {
				for c := range key.Changes(ctx, r) {
					last = c.Err
				}
				return last
			},
			"Set.Changes": func(ctx context.Context) (last error) {
				for c := range s.Changes(ctx, r) {
					last = c.Err
				}
				return last
			},
		}
	}
	key := distributeddata.NewKey("k", crdt.GCounter{})
	some := distributeddata.NewShardedSet("s", 1, crdt.ORSet[string]{})
	many := distributeddata.NewShardedMap("m", 1, crdt.ORMap[string, crdt.GCounter]{})
	for name, r := range map[string]*distributeddata.Replicator{"nil": nil, "zero": {}} {
		for call, f := range calls(r, key, some, many) {
			require.ErrorIs(t, f(t.Context()), distributeddata.ErrInvalid, "%s: %s", name, call)
		}
	}
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		for name, f := range calls(dd, distributeddata.Key[crdt.GCounter]{}, set{}, users{}) {
			if name != "Ready" && name != "Close" && name != "Flush" {
				require.ErrorIs(t, f(ctx), distributeddata.ErrInvalid, name)
			}
		}
		_, err := set{}.Of(dd.Snapshot())
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		_, err = users{}.Of(dd.Snapshot())
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			set{}.AddIn(tx, "x")
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		dd.Request(c.Member(0).System.Root, (*distributeddata.Get[crdt.GCounter])(nil))
		require.NoError(t, dd.Flush(ctx))
		require.Zero(t, dd.Status().Panics)
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
