package grains_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/protobuf/protoc-gen-go-grain/test/hello"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
	"github.com/concord-go/concord/testkit"
)

// ledger records which activations of grains have begun and not ended.
type ledger struct {
	mu    sync.Mutex
	alive map[string][]string // by identity
	most  int                 // activations of one identity at one time
}

func (l *ledger) begins(identity, at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alive[identity] = append(l.alive[identity], at)
	l.most = max(l.most, len(l.alive[identity]))
}

func (l *ledger) ends(identity, at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.alive[identity] {
		if a == at {
			l.alive[identity] = append(l.alive[identity][:i:i], l.alive[identity][i+1:]...)
			return
		}
	}
}

// greeter is the grain of the tests: generated code calls it.
type greeter struct {
	book *ledger
	at   string
}

func (g *greeter) Init(ctx cluster.GrainContext) {
	g.at = ctx.Self().String()
	g.book.begins(ctx.Identity(), g.at)
}

func (g *greeter) Terminate(ctx cluster.GrainContext) { g.book.ends(ctx.Identity(), g.at) }

func (g *greeter) ReceiveDefault(cluster.GrainContext) {}

func (g *greeter) SayHello(_ *emptypb.Empty, ctx cluster.GrainContext) (*hello.SayHelloResponse,
	error) {
	if e, ok := sharding.Self(ctx); ok && e.Check() != nil {
		return nil, e.Check()
	}
	return &hello.SayHelloResponse{Message: ctx.Identity() + " at " + ctx.Self().Address}, nil
}

func kind(book *ledger) *cluster.Kind {
	return hello.NewHelloKind(func() hello.Hello { return &greeter{book: book} }, 0)
}

// world is a cluster whose members run grains.
type world struct {
	*testkit.Cluster
	t        *testing.T
	book     *ledger
	clusters *testkit.PerMember[*cluster.Cluster]
}

type lookupOf func(*testkit.Member) (cluster.IdentityLookup, error)

func ours(cfg grains.Config) lookupOf {
	return func(m *testkit.Member) (cluster.IdentityLookup, error) {
		cfg.Session, cfg.MinMembers = m.Session, 2
		return grains.New(m.System, cfg)
	}
}

func theirs(*testkit.Member) (cluster.IdentityLookup, error) { return disthash.New(), nil }

func run(t *testing.T, n int, lookup lookupOf, test func(w *world), options ...testkit.Option) {
	t.Helper()
	testkit.Run(t, 0, func(t *testing.T, c *testkit.Cluster) {
		w := &world{Cluster: c, t: t, book: &ledger{alive: map[string][]string{}}}
		w.clusters = testkit.Each(c, func(m *testkit.Member) (*cluster.Cluster, error) {
			l, err := lookup(m)
			if err != nil {
				return nil, err
			}
			return m.Grains(l, kind(w.book)), nil
		})
		for range n {
			c.Join()
		}
		c.Ready()
		test(w)
	}, options...)
}

// hello calls a grain from a member.
func (w *world) hello(from int, identity string) (string, error) {
	r, err := hello.GetHelloGrainClient(w.clusters.At(from), identity).SayHello(&emptypb.Empty{})
	if err != nil {
		return "", err
	}
	return r.Message, nil
}

func TestLookup_OneActivationForAllMembers(t *testing.T) {
	run(t, 3, ours(grains.Config{}), func(w *world) {
		at := map[string]bool{}
		for n := range 30 {
			id := fmt.Sprint("grain ", n)
			first, err := w.hello(0, id)
			require.NoError(t, err)
			for i := range 3 {
				again, err := w.hello(i, id)
				require.NoError(t, err)
				require.Equal(t, first, again)
			}
			at[first[len(first)-8:]] = true
		}
		require.Len(t, at, 3)
		require.Equal(t, 1, w.book.most)
	})
}

// The side without the lease store's majority has no grains, and the other side has each once.
func TestLookup_APartitionMakesNoDoubles(t *testing.T) {
	for _, c := range []struct {
		name   string
		lookup lookupOf
		most   int
	}{{"disthash", theirs, 2}, {"grains", ours(grains.Config{}), 1}} {
		t.Run(c.name, func(t *testing.T) {
			run(t, 3, c.lookup, func(w *world) {
				w.Advance(10 * time.Second)
				w.Partition([]int{0}, []int{1, 2})
				w.Member(0).Drops(w.Member(1), w.Member(2))
				w.Member(1).Drops(w.Member(0))
				w.Member(2).Drops(w.Member(0))
				for n := range 20 {
					id := fmt.Sprint("grain ", n)
					var calls sync.WaitGroup
					for i := range 3 {
						calls.Go(func() { _, _ = w.hello(i, id) })
					}
					calls.Wait()
				}
				require.Equal(t, c.most, w.book.most, "activations at one time")
			})
		})
	}
}

var _ actor.Actor = (*hello.HelloActor)(nil)
