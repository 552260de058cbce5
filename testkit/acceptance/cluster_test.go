package acceptance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
	"github.com/concord-go/concord/testkit"
)

type replicators = testkit.PerMember[*distributeddata.Replicator]

func replicated(c *testkit.Cluster) *replicators {
	return testkit.Each(c, func(m *testkit.Member) (*distributeddata.Replicator, error) {
		return distributeddata.New(m.System, distributeddata.Config{MinMembers: 3})
	})
}

var shopping = distributeddata.NewKey("shopping", crdt.ORSet[string]{})

func buy(dd *distributeddata.Replicator, item string, at distributeddata.Consistency) error {
	_, err := shopping.Update(context.Background(), dd,
		func(w *crdt.Writer, s *crdt.ORSet[string]) error {
			s.Add(w, item)
			return nil
		}, at)
	return err
}

func sameAtAll(c *testkit.Cluster, dd *replicators, want ...string) error {
	for _, m := range c.Members() {
		set, err := shopping.Get(context.Background(), dd.Of(m))
		if got := slices.Collect(set.All()); !slices.Equal(got, want) {
			return fmt.Errorf("%v has %v: %w", m, got, err)
		}
	}
	return nil
}

func TestCluster_HealsAfterAnHourOfPartition(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		dd := replicated(c)
		c.Ready()
		c.Partition([]int{0}, []int{1, 2})
		require.NoError(t, buy(dd.At(0), "milk", distributeddata.Local))
		require.NoError(t, buy(dd.At(1), "bread", distributeddata.Majority))
		c.Advance(time.Hour)
		require.Error(t, sameAtAll(c, dd, "bread", "milk"))
		c.Heal()
		testkit.Eventually(t, 10*time.Second, func() error {
			return sameAtAll(c, dd, "bread", "milk")
		})
	})
}

func TestCluster_LostMessagesAreRepaired(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		dd := replicated(c)
		c.Ready()
		c.SetAll(testkit.Faults{Loss: 0.3, Duplicate: 0.3, Reorder: true})
		for i := range 10 {
			require.NoError(t, buy(dd.At(i%3), fmt.Sprintf("item %d", i), distributeddata.Local))
		}
		testkit.Eventually(t, time.Minute, func() error {
			set, err := shopping.Get(t.Context(), dd.At(0))
			if set.Len() != 10 {
				return fmt.Errorf("%d items: %w", set.Len(), err)
			}
			return nil
		})
	})
}

func TestCluster_ARestartedMemberIsRefilled(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		dd := replicated(c)
		c.Ready()
		require.NoError(t, buy(dd.At(0), "milk", distributeddata.Majority))
		c.Member(0).Restart()
		c.Ready()
		require.NoError(t, sameAtAll(c, dd, "milk"))
	})
}

// The members' sessions do everything that they do on a file store.
func TestSession_HasTheAbilitiesOfProduction(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		ctx, a, b := t.Context(), c.Member(0), c.Member(1)
		require.True(t, a.Session.Shared(), "one renewal serves all leases of a session")
		stop, err := a.Session.Observe(b.Session.ID())
		require.NoError(t, err)
		defer stop()

		doc, err := coordination.NewDocument(a.Store, "menu")
		require.NoError(t, err)
		version, swapped, err := doc.Swap(ctx, "", []byte("soup"))
		require.NoError(t, err)
		require.True(t, swapped)
		other, err := coordination.NewDocument(b.Store, "menu")
		require.NoError(t, err)
		menu, same, err := other.Load(ctx)
		require.NoError(t, err)
		require.Equal(t, "soup", string(menu))
		require.Equal(t, version, same)

		s, err := coordination.Open(a.Store, coordination.Config{Owner: a.ID, Clock: a.Clock(),
			Forever: true})
		require.NoError(t, err)
		grant, err := s.Lease("permit").TryAcquire(ctx)
		require.NoError(t, err)
		require.NoError(t, grant.Release(ctx))
		require.NoError(t, s.Close(ctx))
	})
}

// The lease goes round in the order in which the members asked, also past one that has crashed.
func TestSession_FairServesInOrderOfArrival(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		ctx, order := t.Context(), make(chan string, 4)
		grants := map[string]*coordination.Grant{}
		first, err := c.Member(0).Session.Lease("printer").Acquire(ctx)
		require.NoError(t, err)
		var mu sync.Mutex
		for _, i := range []int{2, 1, 3} {
			m := c.Member(i)
			go func() {
				if g, err := m.Session.Lease("printer").Acquire(ctx); err == nil {
					mu.Lock()
					grants[m.ID] = g
					mu.Unlock()
					order <- m.ID
				}
			}()
			c.Advance(time.Second)
		}
		c.Member(1).Crash()
		require.NoError(t, first.Release(ctx))
		for _, i := range []int{2, 3} {
			id := c.Member(i).ID
			require.Equal(t, id, <-order)
			mu.Lock()
			grant := grants[id]
			mu.Unlock()
			require.NoError(t, grant.Check())
			require.NoError(t, grant.Release(ctx))
		}
	}, testkit.Leases(coordination.Config{Fair: true}))
}

func TestSession_OfAPoorerStore(t *testing.T) {
	poor := testkit.LeaseStore(func(s *testkit.Store) leasestore.Store {
		return struct{ leasestore.Store }{s}
	})
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		require.False(t, c.Member(0).Session.Shared())
	}, poor)
}

// sharded gives every member a region with the default configuration of sharding.
func sharded(c *testkit.Cluster) *testkit.PerMember[*sharding.Region[proto.Message]] {
	dd := replicated(c)
	return testkit.Each(c, func(m *testkit.Member) (*sharding.Region[proto.Message], error) {
		return sharding.New[proto.Message](m.System, m.Session, dd.Of(m),
			sharding.Config{Type: "cart"}, func(e sharding.Entity) actor.Actor {
				return guardedEntity(e)
			})
	})
}

func guardedEntity(e sharding.Entity) actor.Actor {
	return actor.ReceiveFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*text); ok && e.Check() == nil {
			ctx.Respond(wrapperspb.String(e.ID + " got " + m.Value))
		}
	})
}

const carts = 40

// askAll asks every cart from a member, and returns the time until all have answered.
func askAll(t *testing.T, region *sharding.Region[proto.Message]) time.Duration {
	start := time.Now()
	for i := range carts {
		id := fmt.Sprint("cart-", i)
		testkit.Eventually(t, 3*time.Minute, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := region.Ref(id).Ask(ctx, wrapperspb.String("milk"))
			return err
		})
	}
	return time.Since(start)
}

// A crash costs at most what the longest lease costs: its TTL, the assumed error of clocks, and the
// time in which the others notice and take over.
func TestSharding_MovesAfterACrash(t *testing.T) {
	const ttl = 10 * time.Second
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		regions := sharded(c)
		c.Ready()
		askAll(t, regions.At(1))
		c.Advance(time.Minute)
		c.Member(0).Crash()
		c.Member(0).Expel()
		took := askAll(t, regions.At(1))
		t.Logf("all of %d carts answer %v after the crash of one of three members", carts, took)
		require.Less(t, took, ttl+5*time.Second)
	}, testkit.Leases(coordination.Config{TTL: ttl}))
}

func TestSingleton_MovesAfterACrash(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		jobs := testkit.Each(c, func(m *testkit.Member) (*singleton.Singleton, error) {
			return singleton.New(m.System, m.Session, singleton.Config{Name: "jobs"},
				func(t coordination.Tenure) actor.Actor {
					return actor.ReceiveFunc(func(ctx actor.Context) {
						if _, ok := ctx.Message().(*text); ok && t.Check() == nil {
							ctx.Respond(wrapperspb.Int64(int64(t.Token())))
						}
					})
				})
		})
		c.Ready()
		ask := func() (token int64) {
			testkit.Eventually(t, 2*time.Minute, func() error {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				answer, err := singleton.As[*number](jobs.At(2).Ask(ctx, wrapperspb.String("who?")))
				token = answer.GetValue()
				return err
			})
			return token
		}
		before := ask()
		c.Member(0).Crash()
		c.Member(0).Expel()
		require.Greater(t, ask(), before)
	})
}

func TestLease_IsLostWhenItsStoreIsAway(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		a, b := c.Member(0), c.Member(1)
		grant, err := a.Session.Lease("report").Acquire(t.Context())
		require.NoError(t, err)
		a.Store.Set(testkit.StoreFaults{Away: true})
		next, err := b.Session.Lease("report").Acquire(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, grant.Check(), coordination.ErrLost)
		require.Greater(t, next.Token(), grant.Token())
	})
}
