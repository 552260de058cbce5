package distributeddata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

var (
	checking = distributeddata.NewKey("checking", crdt.PNCounter{})
	savings  = distributeddata.NewKey("savings", crdt.PNCounter{})
)

func transfer(amount int64) func(*distributeddata.Tx) error {
	return func(tx *distributeddata.Tx) error {
		checking.In(tx).Add(tx.Writer, -amount)
		savings.In(tx).Add(tx.Writer, amount)
		return nil
	}
}

func TestAtomically_EveryReplicaShowsAllOrNothing(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3, NotifyInterval: -1}, func(c *cluster) {
		stop := make(chan struct{})
		torn := make(chan bool, 1)
		go func() {
			for {
				select {
				case <-stop:
					torn <- false
					return
				case <-time.After(time.Millisecond):
				}
				s := c.at(1).Snapshot()
				a, _ := checking.Of(s)
				b, _ := savings.Of(s)
				if a.Value()+b.Value() != 0 {
					torn <- true
					return
				}
			}
		}()
		for i := range 50 {
			level := local
			if i%10 == 9 {
				level = distributeddata.Majority
			}
			require.NoError(t, distributeddata.Atomically(context.Background(), c.at(i%3),
				transfer(5), level))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		close(stop)
		require.False(t, <-torn)
		for i := range 3 {
			v, err := savings.Get(context.Background(), c.at(i))
			require.NoError(t, err)
			require.EqualValues(t, 250, v.Value())
		}
	})
}

func TestAtomically_AnyFailureRefusesEverything(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		require.NoError(t, c.add(0, "x"))
		refused := errors.New("refused")
		wrong := distributeddata.NewKey("cart", crdt.PNCounter{})
		for name, f := range map[string]func(tx *distributeddata.Tx) error{
			"error": func(tx *distributeddata.Tx) error { return refused },
			"panic": func(tx *distributeddata.Tx) error { panic("oops") },
			"other type": func(tx *distributeddata.Tx) error {
				wrong.In(tx).Add(tx.Writer, 1)
				return nil
			},
			"both types": func(tx *distributeddata.Tx) error {
				cart.In(tx)
				wrong.In(tx).Add(tx.Writer, 1)
				return nil
			},
			"bad key": func(tx *distributeddata.Tx) error {
				distributeddata.NewKey("", items{}).In(tx)
				return nil
			},
			"failed late": func(tx *distributeddata.Tx) error { tx.Fail(refused); return nil },
		} {
			err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				savings.In(tx).Add(tx.Writer, 1)
				return f(tx)
			}, local)
			require.ErrorIs(t, err, distributeddata.ErrModify, name)
			_, err = savings.Get(ctx, dd)
			require.ErrorIs(t, err, distributeddata.ErrNotFound, name)
		}
		require.ErrorIs(t, distributeddata.Atomically(ctx, dd, transfer(1),
			distributeddata.Nodes(1)), distributeddata.ErrInvalid)
	})
}

// A transaction has at most 100,000 entries, and one with more changes nothing.
func TestAtomically_HasABound(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		many := func(n int) error {
			return distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				for i := range n {
					distributeddata.NewKey(fmt.Sprint("n", i), crdt.GCounter{}).In(tx).Add(
						tx.Writer, 1)
				}
				return nil
			}, local)
		}
		err := many(100_001)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorIs(t, err, crdt.ErrTooLarge)
		require.ErrorContains(t, err, "a transaction changes at most 100000 entries")
		_, err = distributeddata.NewKey("n0", crdt.GCounter{}).Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrNotFound)
		require.NoError(t, many(100_000))
	})
}

func TestAtomically_InGivesTheSameAndDeleteInStartsAgain(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		require.NoError(t, c.add(0, "old"))
		require.NoError(t, distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			cart.In(tx).Add(tx.Writer, "undone")
			require.Same(t, cart.In(tx), cart.In(tx))
			cart.DeleteIn(tx)
			cart.In(tx).Add(tx.Writer, "new")
			return nil
		}, local))
		require.Equal(t, []string{"new"}, c.elements(0))
	})
}

func TestDelete_PermanentlyIsForEver(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		ctx := context.Background()
		require.NoError(t, c.add(0, "x", distributeddata.All))
		c.Net.Partition(addresses(c, 2), addresses(c, 0, 1))
		require.NoError(t, c.add(2, "concurrent")) // has not heard of it
		require.NoError(t, cart.Delete(ctx, c.at(0), distributeddata.Majority,
			distributeddata.Permanently))
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		for i := range 3 {
			v, err := cart.Get(ctx, c.at(i))
			require.ErrorIs(t, err, distributeddata.ErrDeleted)
			require.Zero(t, v.Len())
			require.ErrorIs(t, c.add(i, "y"), distributeddata.ErrDeleted)
			require.NoError(t, cart.Delete(ctx, c.at(i), local),
				"again, and without the option: nothing happens")
			require.ErrorIs(t, distributeddata.Atomically(ctx, c.at(i),
				func(tx *distributeddata.Tx) error {
					cart.In(tx).Add(tx.Writer, "z")
					return nil
				}, local), distributeddata.ErrDeleted)
			for k := range c.at(i).Keys() {
				t.Errorf("key %q is listed", k)
			}
		}
		time.Sleep(5 * time.Second)
		_, err := cart.Get(ctx, c.at(2))
		require.ErrorIs(t, err, distributeddata.ErrDeleted)
	})
}
