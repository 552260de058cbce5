package distributeddata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// Every second of these keys, in the order of their names, is durable.
var twoDomains = distributeddata.Config{Durable: []string{"cart-b", "cart-d*"}}

// runDomains runs a test on three members once for a volatile key and once for a durable one.
func runDomains(t *testing.T, test func(c *cluster, key distributeddata.Key[items])) {
	for name, key := range map[string]string{"volatile": "a", "durable": "b"} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, twoDomains, func(c *cluster) { test(c, carts.Key(key)) })
		})
	}
}

func adding(elems ...string) func(w *crdt.Writer, v *items) error {
	return func(w *crdt.Writer, v *items) error { v.Add(w, elems...); return nil }
}

func (c *cluster) values(i int, key distributeddata.Key[items],
	at ...distributeddata.Consistency) []string {
	c.t.Helper()
	v, err := key.Get(context.Background(), c.at(i), at...)
	if !errors.Is(err, distributeddata.ErrNotFound) {
		require.NoError(c.t, err)
	}
	return slices.Collect(v.All())
}

func TestDomains_EachOperationWorksOnBoth(t *testing.T) {
	runDomains(t, func(c *cluster, key distributeddata.Key[items]) {
		ctx := context.Background()
		levels := []distributeddata.Consistency{local, distributeddata.Majority,
			distributeddata.All, distributeddata.Nodes(2)}
		for i, level := range levels {
			_, err := key.Update(ctx, c.at(i%3), adding(fmt.Sprint(i)), level)
			require.NoError(t, err)
		}
		for _, level := range append(levels, distributeddata.Linearizable) {
			require.Equal(t, []string{"0", "1", "2", "3"}, c.values(1, key, level))
		}
		_, err := key.Update(ctx, c.at(0), func(*crdt.Writer, *items) error {
			return errors.New("no")
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		c.Member(0).System.Root.Send(c.at(0).PID(), key.UpdateMessage(adding("sent"), local))
		time.Sleep(time.Second)
		require.Contains(t, c.values(2, key), "sent")

		require.NoError(t, key.Delete(ctx, c.at(1), distributeddata.Majority))
		_, err = key.Get(ctx, c.at(1))
		require.ErrorIs(t, err, distributeddata.ErrNotFound)
		require.NoError(t, distributeddata.Atomically(ctx, c.at(2),
			func(tx *distributeddata.Tx) error {
				key.In(tx).Add(tx.Writer, "again")
				return nil
			}, distributeddata.All))
		require.Equal(t, []string{"again"}, c.values(0, key))
		require.NoError(t, key.Delete(ctx, c.at(1), distributeddata.All,
			distributeddata.Permanently))
		_, err = key.Get(ctx, c.at(0), distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrDeleted)
	})
}

func TestDomains_AtomicUpdatesAreOfOne(t *testing.T) {
	run(t, 3, twoDomains, func(c *cluster) {
		ctx := context.Background()
		put := func(names ...string) error {
			return distributeddata.Atomically(ctx, c.at(0), func(tx *distributeddata.Tx) error {
				for _, n := range names {
					carts.Key(n).In(tx).Add(tx.Writer, "x")
				}
				return nil
			}, distributeddata.Majority)
		}
		require.NoError(t, put("a", "c"))
		require.NoError(t, put("b", "d1", "d2"))
		require.NoError(t, put())
		for _, mixed := range [][]string{{"e", "d3"}, {"d3", "e"}, {"d3", "d4", "e", "d5"}} {
			err := put(mixed...)
			require.ErrorIs(t, err, distributeddata.ErrModify)
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
			require.ErrorContains(t, err, `key "cart-d3" is`)
			require.ErrorContains(t, err, `key "cart-e" is`)
		}
		err := distributeddata.Atomically(ctx, c.at(0), func(tx *distributeddata.Tx) error {
			carts.Key("a").In(tx).Add(tx.Writer, "y")
			carts.Key("b").DeleteIn(tx)
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		err = distributeddata.Atomically(ctx, c.at(0), func(*distributeddata.Tx) error {
			panic("oh")
		}, local)
		require.ErrorContains(t, err, "panic: oh")
		time.Sleep(time.Second)
		for i := range 3 {
			require.Equal(t, []string{"cart-a", "cart-b", "cart-c", "cart-d1", "cart-d2"},
				slices.Collect(c.at(i).Keys()))
			require.Equal(t, []string{"x"}, c.values(i, carts.Key("a")))
		}
		require.EqualValues(t, 2, c.at(0).Status().Updates,
			"what was refused has made no event in either domain")
	})
}

// A transaction without a waiter, and one whose function ends the goroutine, leave both domains
// working.
func TestDomains_TransactionsThatNobodyWaitsFor(t *testing.T) {
	run(t, 1, twoDomains, func(c *cluster) {
		send := func(modify func(tx *distributeddata.Tx) error) {
			c.Member(0).System.Root.Send(c.at(0).PID(), &distributeddata.Transaction{
				Modify: modify, At: local})
		}
		for _, n := range []string{"a", "b", "c", "d"} {
			send(func(tx *distributeddata.Tx) error {
				carts.Key(n).In(tx).Add(tx.Writer, "x")
				return nil
			})
		}
		time.Sleep(time.Second)
		require.Len(t, slices.Collect(c.at(0).Keys()), 4)
		err := distributeddata.Atomically(context.Background(), c.at(0),
			func(tx *distributeddata.Tx) error {
				carts.Key("b").In(tx).Add(tx.Writer, "lost")
				runtime.Goexit()
				return nil
			}, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		for _, n := range []string{"a", "b"} {
			_, err := carts.Key(n).Update(context.Background(), c.at(0), adding("y"),
				distributeddata.Majority)
			require.NoError(t, err)
			require.Equal(t, []string{"x", "y"}, c.values(0, carts.Key(n)))
		}
	})
}

// Prefixes, snapshots, loops and subscriptions show the entries of both domains as one, in the
// order of their names.
func TestDomains_AreReadAsOne(t *testing.T) {
	run(t, 2, twoDomains, func(c *cluster) {
		ctx := context.Background()
		loop := hear(c.at(1), ofCarts)
		defer loop.stop()
		for _, n := range []string{"d2", "a", "b", "c", "d1", "e"} {
			_, err := carts.Key(n).Update(ctx, c.at(0), adding(n), distributeddata.All)
			require.NoError(t, err)
		}
		want := []string{"cart-a", "cart-b", "cart-c", "cart-d1", "cart-d2", "cart-e"}
		require.Equal(t, want, slices.Collect(c.at(1).Keys()))
		var names []string
		for k := range carts.Of(c.at(1).Snapshot()) {
			names = append(names, k.ID())
			if len(names) == 4 {
				break
			}
		}
		require.Equal(t, want[:4], names)
		time.Sleep(time.Second)
		require.Len(t, loop.take(), 6)
		for _, n := range want {
			_, err := carts.Key(n[len("cart-"):]).Update(ctx, c.at(0), adding("z"), local)
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		var lines []string
		for _, n := range want {
			lines = append(lines, fmt.Sprintf("%s [%s][%s z]", n, n[len("cart-"):],
				n[len("cart-"):]))
		}
		require.Equal(t, lines, loop.take())
		whole := hear(c.at(1), ofCarts)
		time.Sleep(time.Second)
		whole.stop()
		require.Len(t, whole.lines, 6)

		s := c.at(1).Status()
		require.True(t, s.Ready)
		require.Equal(t, 6, s.Keys)
		require.NotNil(t, s.Durable)
		require.Equal(t, 3, s.Durable.Keys)
		require.True(t, s.Durable.Ready)
		require.NotEqual(t, s.Replica, s.Durable.Replica)
		require.EqualValues(t, 12, c.at(0).Status().Updates)
		require.EqualValues(t, 12, s.Applied)
	})
}

// With a membership record each domain has a line in it, and neither waits forever for the other.
func TestDomains_ShareTheRecordOfTheMembership(t *testing.T) {
	s := &shelf{}
	cfg := twoDomains
	cfg.Membership, cfg.MinMembers = s, 1
	run(t, 3, cfg, func(c *cluster) {
		for i, n := range []string{"a", "b"} {
			_, err := carts.Key(n).Update(context.Background(), c.at(i), adding("x"),
				distributeddata.All)
			require.NoError(t, err)
		}
		require.Equal(t, 3, c.at(0).Status().Counted)
		require.Equal(t, 3, c.at(0).Status().Durable.Counted)
		s.mu.Lock()
		defer s.mu.Unlock()
		lines := bytes.Split(s.text, []byte("\n"))
		require.Len(t, lines, 2)
		require.NotEqual(t, lines[0], lines[1])
	})
}

// Without Durable there is one core, and nothing of the other one is sent.
func TestDomains_WithoutDurableThereIsOne(t *testing.T) {
	if *durableKeys != "" {
		t.Skip("all tests list durable keys")
	}
	run(t, 2, distributeddata.Config{}, func(c *cluster) {
		require.NoError(t, c.add(0, "x", distributeddata.All))
		time.Sleep(5 * time.Second)
		require.Nil(t, c.at(0).Status().Durable)
		for kind := range c.at(0).Status().Sent {
			require.NotContains(t, kind, "durable")
		}
	})
}

// A member that lists different durable keys is reported, and no durable keys are exchanged with it
// until its list is equal. Volatile keys continue.
func TestDomains_AnotherListIsNamedAndNotMerged(t *testing.T) {
	for name, other := range map[string][]string{"another": {"cart-b"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			if other == nil && *durableKeys != "" {
				t.Skip("all tests list durable keys")
			}
			c := &cluster{t: t, unready: true, vary: func(m *simnet.Member,
				cfg *distributeddata.Config) {
				*cfg = distributeddata.Config{MinMembers: 2, Durable: twoDomains.Durable}
				if m.Index == 2 {
					cfg.Durable = other
				}
			}}
			c.run(3, func(c *cluster) {
				c.ready(c.Member(0))
				c.ready(c.Member(1))
				for i, n := range []string{"a", "b"} { // one volatile, one durable
					_, err := carts.Key(n).Update(context.Background(), c.at(i), adding("x"),
						distributeddata.Majority)
					require.NoError(t, err)
				}
				_, err := carts.Key("b").Update(context.Background(), c.at(2), adding("theirs"),
					local)
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				require.Equal(t, []string{c.Member(2).Address}, c.at(0).Status().OtherDurable)
				require.Equal(t, []string{c.Member(0).Address, c.Member(1).Address},
					c.at(2).Status().OtherDurable)
				require.Equal(t, []string{"x"}, c.values(2, carts.Key("a")), "volatile keys go on")
				require.Equal(t, []string{"x"}, c.values(0, carts.Key("b")))
				require.Equal(t, []string{"theirs"}, c.values(2, carts.Key("b")))
				if other != nil {
					require.ErrorContains(t, lifecycle.Of(c.Member(2).System).Check(),
						"list other durable keys")
				}
				// It restarts with the list of the others.
				next := c.Restart(c.Member(2))
				c.ready(next)
				time.Sleep(5 * time.Second)
				require.Empty(t, c.at(0).Status().OtherDurable)
				_, err = carts.Key("b").Update(context.Background(), c.dd[next], adding("y"),
					distributeddata.All)
				require.NoError(t, err)
				want := []string{"x", "y"}
				if other != nil { // it had written under the same name, and has kept that
					want = []string{"theirs", "x", "y"}
				}
				require.Equal(t, want, c.values(0, carts.Key("b")))
			})
		})
	}
}

// The state of an incarnation continues in the next one, in both domains, and so do loops and
// handles.
func TestDomains_ContinueAfterRejoining(t *testing.T) {
	runRejoin(t, 3, twoDomains, func(c *rejoinCluster) {
		m := c.Member(0)
		c.alone(m)
		for _, n := range []string{"a", "b"} {
			_, err := carts.Key(n).Update(context.Background(), c.dd[m], adding("alone"), local)
			require.NoError(t, err)
		}
		require.NoError(t, c.end(m))
		require.Equal(t, []string{"cart-a", "cart-b"}, slices.Collect(c.dd[m].Keys()),
			"between two incarnations")
		c.again(m)
		synctest.Wait()
		time.Sleep(15 * time.Second)
		for _, o := range c.Live() {
			require.Equal(t, []string{"cart-a", "cart-b"}, slices.Collect(c.dd[o].Keys()), o)
		}
	})
}
