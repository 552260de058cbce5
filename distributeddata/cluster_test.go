package distributeddata_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/testkit"
)

var durableKeys = flag.String("durable", "",
	`what all tests list as Config.Durable unless they list something, with commas: -durable '*' plays them on durable keys`)

// listed returns a configuration with the durable keys of the flag.
func listed(cfg distributeddata.Config) distributeddata.Config {
	if cfg.Durable == nil && *durableKeys != "" {
		cfg.Durable = strings.Split(*durableKeys, ",")
		if s, err := testkit.NewDisk(1).Open("ddata"); err == nil {
			cfg.Store = s
		}
	}
	return cfg
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type items = crdt.ORSet[string]

var cart = distributeddata.NewKey("cart", items{})

// cluster is a virtual cluster with a replicator at every member.
type cluster struct {
	*simnet.Cluster
	t   *testing.T
	cfg distributeddata.Config
	dd  map[*simnet.Member]*distributeddata.Replicator

	disks  map[string]*testkit.Disk // by address
	stores map[string]store.Store   // of the present process at an address

	wrap         func(store.Store) store.Store                       // of all members; nil: none
	vary         func(m *simnet.Member, cfg *distributeddata.Config) // changes its configuration
	setup        func(*distributeddata.Replicator)                   // before its start
	incarnations map[string]*lifecycle.Incarnations                  // by address; nil: one each
	unready      bool                                                // the test begins at once
}

// config returns the configuration of a member. A restarted member finds on its disk what was
// synced.
func (c *cluster) config(m *simnet.Member) distributeddata.Config {
	cfg := c.cfg
	if c.vary != nil {
		c.vary(m, &cfg)
	}
	if cfg.Durable == nil {
		return cfg
	}
	if c.disks == nil {
		c.disks, c.stores = map[string]*testkit.Disk{}, map[string]store.Store{}
	}
	if c.disks[m.Address] == nil {
		c.disks[m.Address] = testkit.NewDisk(1)
	} else if c.incarnations == nil {
		c.disks[m.Address].Crash()
	}
	if c.stores[m.Address] == nil || c.incarnations == nil {
		s, err := c.disks[m.Address].Open("ddata")
		require.NoError(c.t, err)
		c.stores[m.Address] = s
	}
	cfg.Store = c.stores[m.Address]
	if c.wrap != nil {
		cfg.Store = c.wrap(cfg.Store)
	}
	return cfg
}

// run runs a test on n members whose replicas count.
func run(t *testing.T, n int, cfg distributeddata.Config, test func(c *cluster)) {
	t.Helper()
	runVaried(t, n, cfg, nil, test)
}

// runVaried gives every member its own configuration.
func runVaried(t *testing.T, n int, cfg distributeddata.Config,
	vary func(*simnet.Member, *distributeddata.Config), test func(c *cluster)) {
	t.Helper()
	if cfg.MinMembers == 0 {
		cfg.MinMembers = n
	}
	(&cluster{t: t, cfg: cfg, vary: vary}).run(n, test)
}

func (c *cluster) run(n int, test func(c *cluster)) {
	c.t.Helper()
	c.cfg, c.dd = listed(c.cfg), map[*simnet.Member]*distributeddata.Replicator{}
	simnet.Run(c.t, simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: n, Setup: c.start,
	}, func(t *testing.T, sc *simnet.Cluster) {
		c.Cluster, c.t = sc, t
		defer c.close()
		for _, m := range sc.Live() {
			if !c.unready {
				c.ready(m)
			}
		}
		test(c)
	})
}

// start creates the replica of a member.
func (c *cluster) start(m *simnet.Member) {
	if c.incarnations != nil {
		if c.incarnations[m.Address] == nil {
			c.incarnations[m.Address] = lifecycle.NewIncarnations()
		}
		c.incarnations[m.Address].Attach(m.System)
	}
	dd, err := distributeddata.New(m.System, c.config(m))
	require.NoError(c.t, err)
	c.dd[m] = dd
	if c.setup != nil {
		c.setup(dd)
	}
}

// ready waits until the replica of m counts.
func (c *cluster) ready(m *simnet.Member) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(c.t, c.dd[m].Ready(ctx), m)
}

// close stops every replica, including those of crashed members, whose goroutines still run.
func (c *cluster) close() {
	for _, dd := range c.dd {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = dd.Close(ctx)
		cancel()
	}
}

func (c *cluster) at(i int) *distributeddata.Replicator { return c.dd[c.Member(i)] }

const local = distributeddata.Local

// stated returns the level, Local if there is none.
func stated(at []distributeddata.Consistency) distributeddata.Consistency {
	return append(at, local)[0]
}

func (c *cluster) add(i int, e string, at ...distributeddata.Consistency) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := cart.Update(ctx, c.at(i), func(w *crdt.Writer, v *items) error {
		v.Add(w, e)
		return nil
	}, stated(at))
	return err
}

// Only the net effect of updates without a sender is sent to other members. A failing one is
// reported, and does not affect the others.
func TestUpdate_NobodyWaitsFor(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		counter := distributeddata.NewKey("counter", crdt.GCounter{})
		system, before := c.Member(0).System, c.at(0).Status().Updates
		for i := range 300 {
			system.Root.Send(c.at(0).PID(), &distributeddata.Update[crdt.GCounter]{
				Key: counter, At: local, Modify: func(w *crdt.Writer, v *crdt.GCounter) error {
					v.Add(w, 1)
					if i%3 == 0 {
						return errors.New("no")
					}
					return nil
				}})
		}
		time.Sleep(time.Second)
		for i := range 3 {
			v, err := counter.Get(t.Context(), c.at(i))
			require.NoError(t, err)
			require.EqualValues(t, 200, v.Value())
		}
		require.Less(t, c.at(0).Status().Updates-before, uint64(100))
	})
}

func (c *cluster) elements(i int, at ...distributeddata.Consistency) []string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	v, err := cart.Get(ctx, c.at(i), at...)
	if !errors.Is(err, distributeddata.ErrNotFound) {
		require.NoError(c.t, err)
	}
	return slices.Collect(v.All())
}

func TestUpdate_MajorityIsSeenByMajorityReads(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.add(0, "milk", distributeddata.Majority))
		for i := range 3 {
			require.Equal(t, []string{"milk"}, c.elements(i, distributeddata.Majority))
		}
		require.NoError(t, c.add(2, "bread", distributeddata.All))
		for i := range 3 {
			require.Equal(t, []string{"bread", "milk"}, c.elements(i))
			require.Equal(t, []string{"bread", "milk"}, c.elements(i, distributeddata.Linearizable))
		}
	})
}

func TestUpdate_LocalSpreadsByItself(t *testing.T) {
	run(t, 5, distributeddata.Config{}, func(c *cluster) {
		require.NoError(t, c.add(0, "milk"))
		time.Sleep(50 * time.Millisecond)
		for i := range 5 {
			require.Equal(t, []string{"milk"}, c.elements(i))
		}
	})
}

func TestPartition_MinoritySaysSoAndHealsWithoutLoss(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 5}, func(c *cluster) {
		a, b := addresses(c, 0, 1), addresses(c, 2, 3, 4)
		c.Net.Partition(a, b)
		err := c.add(0, "minority", distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		q, ok := errors.AsType[*distributeddata.QuorumError](err)
		require.True(t, ok)
		require.Equal(t, 3, q.Needed)
		require.Equal(t, 2, q.Answered)
		require.ElementsMatch(t, b, q.Missing)
		require.NoError(t, c.add(4, "majority", distributeddata.Majority))
		time.Sleep(time.Hour)
		c.Net.Heal()
		time.Sleep(3 * time.Second)
		for i := range 5 {
			require.Equal(t, []string{"majority", "minority"}, c.elements(i), i)
		}
	})
}

// A write that failed to reach its majority may be seen by one majority read and missed by the
// next. A linearizable read that has shown it makes it permanent.
func TestGet_LinearizableReadsNeverGoBack(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 5}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2, 3, 4))
		require.ErrorIs(t, c.add(0, "lonely", distributeddata.Majority), distributeddata.ErrQuorum)
		c.Net.Heal()
		c.Net.Partition(addresses(c, 0, 1, 2), addresses(c, 3, 4))
		require.Equal(t, []string{"lonely"}, c.elements(0, distributeddata.Linearizable))
		c.Net.Heal()
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2, 3, 4))
		require.Equal(t, []string{"lonely"}, c.elements(3, distributeddata.Linearizable))
	})
}

func TestUpdate_LevelThatCannotBeReachedFailsAtOnce(t *testing.T) {
	run(t, 2, distributeddata.Config{}, func(c *cluster) {
		begin := time.Now()
		err := c.add(0, "x", distributeddata.Nodes(3))
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorContains(t, err, "needs more replicas than there are members, 2")
		require.NotContains(t, err.Error(), c.Member(1).Address, "it is not missing")
		require.Zero(t, time.Since(begin))
		require.Equal(t, []string{"x"}, c.elements(0))
	})
}

func addresses(c *cluster, members ...int) (out []string) {
	for _, i := range members {
		out = append(out, c.Member(i).Address)
	}
	return out
}

func TestRestart_CatchesUpFromPeersBeforeItCounts(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		for i := range 200 {
			require.NoError(t, c.add(i%3, fmt.Sprint("item ", i), distributeddata.Majority))
		}
		m := c.Restart(c.Member(1))
		c.ready(m)
		require.Len(t, c.elements(m.Index), 200)
		require.NoError(t, c.add(m.Index, "after", distributeddata.All))
		require.Contains(t, c.elements(0), "after")
	})
}

const largeEntry = 30_000 // elements: some 900 kB

// An entry larger than any message is sent in parts, in both directions of a restart.
func TestLargeEntry_CrossesInParts(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := cart.Update(ctx, c.at(0), func(w *crdt.Writer, v *items) error {
			for i := range largeEntry {
				v.Add(w, fmt.Sprintf("element number %d", i))
			}
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
		require.Len(t, c.elements(2), largeEntry)
		m := c.Restart(c.Member(1))
		c.ready(m)
		require.Len(t, c.elements(m.Index), largeEntry)
	})
}

// In GoAkt 94c8740c such an update emptied the store.
func TestModify_ErrorAndPanicRefuseTheUpdateAlone(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		full := errors.New("cart is full")
		_, err := cart.Update(context.Background(), c.at(0), func(w *crdt.Writer, v *items) error {
			v.Add(w, "x")
			return full
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorIs(t, err, full)
		_, err = cart.Update(context.Background(), c.at(0), func(*crdt.Writer, *items) error {
			panic("oops")
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorContains(t, err, "oops")
		require.Empty(t, c.elements(0))
		require.NoError(t, c.add(0, "fine"))
		require.Equal(t, []string{"fine"}, c.elements(0))
	})
}

func TestDelete_TakesWhatItSawAndTheKeyCanBeUsedAgain(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.add(0, "seen", distributeddata.All))
		require.NoError(t, cart.Delete(context.Background(), c.at(1), distributeddata.Majority))
		_, err := cart.Get(context.Background(), c.at(1))
		require.ErrorIs(t, err, distributeddata.ErrNotFound)
		require.NoError(t, c.add(2, "new", distributeddata.All))
		for i := range 3 {
			require.Equal(t, []string{"new"}, c.elements(i))
		}
	})
}

func TestErrors_OfEveryCall(t *testing.T) {
	run(t, 2, distributeddata.Config{}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1))
		bad := distributeddata.NewKey("", items{})
		_, err := bad.Update(context.Background(), c.at(0), func(*crdt.Writer, *items) error {
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		_, err = cart.Get(context.Background(), c.at(0), distributeddata.Nodes(1))
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		require.NoError(t, c.add(0, "x"))
		other := distributeddata.NewKey("cart", crdt.ORSet[int]{})
		_, err = other.Get(context.Background(), c.at(0))
		require.ErrorIs(t, err, distributeddata.ErrType)
		_, err = other.Update(context.Background(), c.at(0),
			func(w *crdt.Writer, v *crdt.ORSet[int]) error {
				v.Add(w, 1)
				return nil
			}, local)
		require.ErrorIs(t, err, distributeddata.ErrType)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = cart.Get(ctx, c.at(0), distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		// No other member has x.
		require.ErrorIs(t, c.at(0).Close(closing), distributeddata.ErrQuorum)
		require.ErrorIs(t, c.add(0, "y"), distributeddata.ErrClosed)
	})
}

// shopper is an actor that uses only the message protocol.
type shopper struct {
	dd      *distributeddata.Replicator
	changes []*distributeddata.Changed[items]
	replies []any
}

type saved struct{ err error }

func (s *shopper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Send(s.dd.PID(), &distributeddata.Subscribe[items]{Key: cart, Subscriber: ctx.Self()})
	case string:
		ctx.Request(s.dd.PID(), &distributeddata.Update[items]{
			Key: cart, At: distributeddata.Majority,
			Modify: func(w *crdt.Writer, v *items) error { v.Add(w, m); return nil },
			Adapt: func(r *distributeddata.UpdateResponse[items]) any {
				_, err := r.Result()
				return &saved{err}
			},
		})
	case *saved:
		s.replies = append(s.replies, m)
		ctx.Request(s.dd.PID(), &distributeddata.Get[items]{Key: cart})
		ctx.Request(s.dd.PID(), &distributeddata.Delete[items]{Key: cart, At: local})
	case *distributeddata.GetResponse[items], *distributeddata.DeleteResponse[items]:
		s.replies = append(s.replies, m)
	case *distributeddata.Changed[items]:
		s.changes = append(s.changes, m)
	}
}

func TestMessages_ActorUpdatesGetsDeletesAndSubscribes(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		s := &shopper{dd: c.at(0)}
		pid := c.Member(0).System.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return s
		}))
		c.Member(0).System.Root.Send(pid, "milk")
		time.Sleep(time.Second)
		require.NoError(t, c.add(2, "bread", distributeddata.All))
		time.Sleep(time.Second)
		c.Member(0).System.Root.Stop(pid)
		synctest.Wait()
		require.Len(t, s.replies, 3)
		require.NoError(t, s.replies[0].(*saved).err)
		v, err := s.replies[1].(*distributeddata.GetResponse[items]).Result()
		require.NoError(t, err)
		require.Equal(t, []string{"milk"}, slices.Collect(v.All()))
		_, err = s.replies[2].(*distributeddata.DeleteResponse[items]).Result()
		require.NoError(t, err)
		// milk was added and removed within one notice interval: only the net change is sent
		last := s.changes[len(s.changes)-1]
		require.Equal(t, []string{"bread"}, slices.Collect(last.Value.All()))
		require.False(t, last.Deleted)
	})
}

func TestSubscribe_TellsOldAndNewAndDeletion(t *testing.T) {
	run(t, 2, distributeddata.Config{}, func(c *cluster) {
		var told []string
		sys := c.Member(1).System
		pid := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if s, ok := ctx.Message().(string); ok {
				told = append(told, s)
			}
		}))
		defer sys.Root.Stop(pid)
		stop := cart.Subscribe(c.at(1), pid, func(ch *distributeddata.Changed[items]) any {
			return fmt.Sprint(slices.Collect(ch.Old.All()), slices.Collect(ch.Value.All()),
				ch.Deleted, ch.Err)
		})
		require.NoError(t, c.add(0, "a"))
		time.Sleep(time.Second)
		require.NoError(t, c.add(1, "b"))
		require.NoError(t, c.add(1, "c"))
		time.Sleep(time.Second)
		require.NoError(t, cart.Delete(context.Background(), c.at(0), local))
		time.Sleep(time.Second)
		stop()
		require.NoError(t, c.add(0, "unheard"))
		synctest.Wait()
		require.Equal(t, []string{"[] [a] false <nil>", "[a] [a b c] false <nil>",
			"[a b c] [] true <nil>"}, told)
	})
}

// startMember starts a cluster of one in real time, for the examples.
func startMember() (*actor.ActorSystem, *distributeddata.Replicator, func()) {
	var dd *distributeddata.Replicator
	c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		var err error
		if dd, err = distributeddata.New(m.System,
			listed(distributeddata.Config{MinMembers: 1})); err != nil {
			panic(err)
		}
	}})
	ctx := context.Background()
	if err := dd.Ready(ctx); err != nil {
		panic(err)
	}
	return c.Member(0).System, dd, func() {
		_ = dd.Close(ctx)
		c.Close()
	}
}
