package grains_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/meters/meterstest"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/grains"
	"github.com/concord-go/concord/testkit"
)

// run2 runs a cluster whose members run kinds, with the lookups that lookup returns.
func run2(t *testing.T, n int, lookup lookupOf, kinds func(m *testkit.Member) []*cluster.Kind,
	test func(w *world), options ...testkit.Option) {
	t.Helper()
	testkit.Run(t, 0, func(t *testing.T, c *testkit.Cluster) {
		w := &world{Cluster: c, t: t, book: &ledger{alive: map[string][]string{}}}
		w.clusters = testkit.Each(c, func(m *testkit.Member) (*cluster.Cluster, error) {
			l, err := lookup(m)
			if err != nil {
				return nil, err
			}
			return m.Grains(l, kinds(m)...), nil
		})
		for range n {
			c.Join()
		}
		test(w)
	}, options...)
}

// every makes all members run one kind.
func every(k *cluster.Kind) func(*testkit.Member) []*cluster.Kind {
	return func(*testkit.Member) []*cluster.Kind { return []*cluster.Kind{k} }
}

// ask calls a grain of kind "k", until it answers or the time is over.
func (w *world) ask(from int, identity, text string, within time.Duration) (string, error) {
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		res, err := w.clusters.At(from).Request(identity, "k", wrapperspb.String(text))
		if s, ok := res.(*wrapperspb.StringValue); ok {
			return s.Value, nil
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("%v, %w", res, err)
		}
	}
}

// echo is a grain that answers with what it is asked for.
type echo struct {
	begins *atomic.Int64 // counts activations; nil: none are counted
}

func (e *echo) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		if e.begins != nil {
			e.begins.Add(1)
		}
	case *wrapperspb.StringValue:
		switch m.Value {
		case "entity":
			s, ok := sharding.Self(ctx)
			ctx.Respond(wrapperspb.String(fmt.Sprint(s.Type, " ", s.ID, " ", s.Token() > 0, " ",
				s.Check() == nil, " ", ok)))
		case "actor":
			ctx.Respond(wrapperspb.String(fmt.Sprintf("%T", ctx.Actor())))
		case "identity":
			ctx.Respond(wrapperspb.String(cluster.GetClusterIdentity(ctx).AsKey()))
		case "passivate":
			sharding.Passivate(ctx)
			ctx.Respond(m)
		case "panic":
			panic("as asked")
		default:
			ctx.Respond(m)
		}
	}
}

func echoes(begins *atomic.Int64, options ...actor.PropsOption) *cluster.Kind {
	return cluster.NewKind("k", actor.PropsFromProducer(func() actor.Actor { return &echo{begins} },
		options...))
}

func TestGrain_IsAnEntityAndOfItsKind(t *testing.T) {
	var seen sync.Map
	k := echoes(nil, actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
			seen.Store(fmt.Sprintf("%T", m.Message), true)
			next(ctx, m)
		}
	}))
	run2(t, 2, ours(grains.Config{}), every(k), func(w *world) {
		for text, want := range map[string]string{
			"entity":    "grains k/a true true true",
			"identity":  "k/a",
			"actor":     "*grains_test.echo",
			"passivate": "passivate",
		} {
			got, err := w.ask(0, "a", text, 30*time.Second)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		w.Settle()
		for _, typ := range []string{"*actor.Started", "*wrapperspb.StringValue", "*actor.Stopping",
			"*actor.Stopped"} {
			_, ok := seen.Load(typ)
			require.True(t, ok, "middleware of the kind has not seen %s", typ)
		}
	})
}

// A message to a cached PID keeps a grain from becoming idle, and one that is not called ends.
func TestGrain_IsPassivatedWhenIdle(t *testing.T) {
	var begins atomic.Int64
	run2(t, 2, ours(grains.Config{Sharding: sharding.Config{Idle: 10 * time.Second}}),
		every(echoes(&begins)), func(w *world) {
			for range 10 {
				_, err := w.ask(0, "a", "hello", 30*time.Second)
				require.NoError(t, err)
				w.Advance(4 * time.Second)
			}
			require.EqualValues(t, 1, begins.Load(), "activations of a grain that is called")
			w.Advance(20 * time.Second)
			_, err := w.ask(1, "a", "hello", time.Second)
			require.NoError(t, err)
			require.EqualValues(t, 2, begins.Load(), "activations of a grain that was idle")
		})
}

func TestGrain_IsRemembered(t *testing.T) {
	var begins atomic.Int64
	run2(t, 3, ours(grains.Config{Sharding: sharding.Config{Remember: true}}),
		every(echoes(&begins)), func(w *world) {
			for n := range 20 {
				_, err := w.ask(0, fmt.Sprint("g", n), "hello", 30*time.Second)
				require.NoError(t, err)
			}
			require.EqualValues(t, 20, begins.Load())
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			_ = w.Member(2).Leave(ctx)
			w.Advance(10 * time.Second)
			require.Greater(t, begins.Load(), int64(20), "grains of the member that has left")
		})
}

// A grain that fails at its start is started again after a pause, and works when it can.
func TestGrain_ThatFailsAtItsStartBacksOff(t *testing.T) {
	for _, c := range []struct {
		name string
		kind func(broken *atomic.Bool, tries *atomic.Int64) *cluster.Kind
	}{
		{"producer", func(broken *atomic.Bool, tries *atomic.Int64) *cluster.Kind {
			return cluster.NewKind("k", actor.PropsFromProducer(func() actor.Actor {
				tries.Add(1)
				if broken.Load() {
					panic("no database")
				}
				return &echo{}
			}))
		}},
		{"init", func(broken *atomic.Bool, tries *atomic.Int64) *cluster.Kind {
			return cluster.NewKind("k", actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*cluster.ClusterInit); ok {
					tries.Add(1)
					if broken.Load() {
						panic("no database")
					}
				}
				(&echo{}).Receive(ctx)
			}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var broken atomic.Bool
			var tries atomic.Int64
			broken.Store(true)
			run2(t, 2, ours(grains.Config{}), every(c.kind(&broken, &tries)), func(w *world) {
				_, err := w.ask(0, "a", "hello", 20*time.Second)
				require.Error(t, err)
				require.Less(t, tries.Load(), int64(60), "in 20 s")
				broken.Store(false)
				_, err = w.ask(1, "a", "hello", 20*time.Second)
				require.NoError(t, err)
			})
		})
	}
}

// Middleware that panics while a grain stops does not keep its shard at the member.
func TestGrain_MiddlewareThatPanicsKeepsNoShard(t *testing.T) {
	for _, at := range []string{"*actor.Stopping", "*actor.Stopped"} {
		t.Run(at, func(t *testing.T) {
			var begins atomic.Int64
			k := echoes(&begins, actor.WithReceiverMiddleware(
				func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
						if fmt.Sprintf("%T", m.Message) == at {
							panic("of the middleware")
						}
						next(ctx, m)
					}
				}))
			run2(t, 2, ours(grains.Config{}), every(k), func(w *world) {
				w.Ready()
				for n := range 20 {
					_, err := w.ask(0, fmt.Sprint("g", n), "hello", 30*time.Second)
					require.NoError(t, err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				require.NoError(t, w.Member(1).Leave(ctx))
				for n := range 20 {
					_, err := w.ask(0, fmt.Sprint("g", n), "hello", 5*time.Second)
					require.NoError(t, err)
				}
			})
		})
	}
}

// A handler that panics restarts the grain, as Proto.Actor does.
func TestGrain_ThatPanicsIsRestarted(t *testing.T) {
	var begins atomic.Int64
	run2(t, 1, oneMember, every(echoes(&begins)), func(w *world) {
		_, err := w.ask(0, "a", "hello", 30*time.Second)
		require.NoError(t, err)
		_, err = w.ask(0, "a", "panic", 0)
		require.Error(t, err)
		got, err := w.ask(0, "a", "identity", 5*time.Second)
		require.NoError(t, err)
		require.Equal(t, "k/a", got)
		require.EqualValues(t, 2, begins.Load())
	})
}

func oneMember(m *testkit.Member) (cluster.IdentityLookup, error) {
	return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 1})
}

func TestLookup_AMemberWithoutStoreOnlyCalls(t *testing.T) {
	lookup := func(m *testkit.Member) (cluster.IdentityLookup, error) {
		cfg := grains.Config{MinMembers: 2}
		if m.Index > 0 {
			cfg.Session = m.Session
		}
		return grains.New(m.System, cfg)
	}
	kinds := func(m *testkit.Member) []*cluster.Kind {
		if m.Index == 0 {
			return nil
		}
		return []*cluster.Kind{echoes(nil)}
	}
	run2(t, 3, lookup, kinds, func(w *world) {
		for n := range 20 {
			_, err := w.ask(0, fmt.Sprint("g", n), "hello", 30*time.Second)
			require.NoError(t, err)
		}
	})
}

// client makes a lookup that of a client.
type client struct{ cluster.IdentityLookup }

func (c client) Setup(of *cluster.Cluster, kinds []string, _ bool) {
	c.IdentityLookup.Setup(of, kinds, true)
}

func TestLookup_AClientAsksMembers(t *testing.T) {
	lookup := func(m *testkit.Member) (cluster.IdentityLookup, error) {
		if m.Index > 0 {
			return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2})
		}
		l, err := grains.New(m.System, grains.Config{MinMembers: 2})
		return client{l}, err
	}
	run2(t, 3, lookup, func(m *testkit.Member) []*cluster.Kind {
		if m.Index == 0 {
			return nil
		}
		return []*cluster.Kind{echoes(nil)}
	}, func(w *world) {
		for n := range 20 {
			_, err := w.ask(0, fmt.Sprint("g", n), "hello", 30*time.Second)
			require.NoError(t, err)
		}
	})
}

// strategy is a member strategy, which the lookup refuses.
type strategy struct{ cluster.MemberStrategy }

func TestLookup_RefusesAMemberStrategy(t *testing.T) {
	k := echoes(nil)
	k.WithMemberStrategy(func(*cluster.Cluster) cluster.MemberStrategy { return strategy{} })
	run2(t, 1, oneMember, every(k), func(w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := w.Member(0).Ready(ctx)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, `kind "k" has a member strategy`)
		require.Nil(t, w.clusters.At(0).Get("a", "k"))
	})
}

// A cluster that is replaced member by member: while a member with the other lookup has the kind,
// no grain is looked up, and so none is active twice.
func TestLookup_RefusesToShareKindsWithAnother(t *testing.T) {
	lookup := func(m *testkit.Member) (cluster.IdentityLookup, error) {
		if m.Index == 2 {
			return disthash.New(), nil
		}
		return grains.New(m.System, grains.Config{Session: m.Session, MinMembers: 2})
	}
	run2(t, 3, lookup, every(echoes(nil)), func(w *world) {
		w.Advance(10 * time.Second)
		require.Nil(t, w.clusters.At(0).Get("a", "k"))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = w.Member(2).Leave(ctx)
		w.Advance(time.Second)
		require.NotNil(t, w.clusters.At(0).Get("a", "k"))
	})
}

// One more kind than the others have is an error with a reason, and affects no other kind.
func TestLookup_AKindThatAHostLacks(t *testing.T) {
	run2(t, 2, ours(grains.Config{}), func(m *testkit.Member) []*cluster.Kind {
		if m.Index == 0 {
			return []*cluster.Kind{echoes(nil)}
		}
		return []*cluster.Kind{cluster.NewKind("other", actor.PropsFromProducer(
			func() actor.Actor { return &echo{} })), echoes(nil)}
	}, func(w *world) {
		found := 0
		for n := range 10 {
			if w.clusters.At(0).Get(fmt.Sprint("g", n), "other") != nil {
				found++
			}
			require.NotNil(t, w.clusters.At(0).Get(fmt.Sprint("g", n), "k"))
		}
		require.Less(t, found, 10)
		require.Positive(t, found)
	})
}

func TestConfig_Refuses(t *testing.T) {
	store := memory.New()
	system := testkit.NewSystem(t)
	for text, cfg := range map[string]grains.Config{
		"MinMembers must be set": {Store: store},
		"MinMembers is -1":       {Store: store, MinMembers: -1},
		"Timeout is -1s":         {Store: store, MinMembers: 1, Timeout: -time.Second},
		"StopMessage must not be set": {MinMembers: 1,
			Sharding: sharding.Config{StopMessage: "stop"}},
		"Shards is -1": {MinMembers: 1, Sharding: sharding.Config{Shards: -1}},
	} {
		_, err := grains.New(system, cfg)
		require.ErrorIs(t, err, sharding.ErrInvalid, text)
		require.ErrorContains(t, err, text)
	}
	_, err := grains.New(nil, grains.Config{MinMembers: 1})
	require.ErrorContains(t, err, "no actor system")
}

func TestMinMembers_IsThatOfTheProcess(t *testing.T) {
	system := testkit.NewSystem(t)
	incarnations := lifecycle.NewIncarnations()
	incarnations.MinMembers = 2
	incarnations.Attach(system)
	_, err := grains.New(system, grains.Config{})
	require.NoError(t, err)
}

func TestGet_RefusesAnIdentityThatIsTooLong(t *testing.T) {
	reader := sdk.NewManualReader()
	lookup := ours(grains.Config{Sharding: sharding.Config{
		Meters: sdk.NewMeterProvider(sdk.WithReader(reader))}})
	run2(t, 2, lookup, every(echoes(nil)), func(w *world) {
		missed := func(m *testkit.Member) int64 {
			all := meterstest.Collect(t, reader, "type", "address")
			name := "concord.grains.not_found grains " + m.System.Address()
			require.Contains(t, all, name)
			return all[name]
		}
		require.NotNil(t, w.clusters.At(0).Get(strings.Repeat("x", 510), "k"))
		require.Zero(t, missed(w.Member(0)))
		require.Nil(t, w.clusters.At(0).Get(strings.Repeat("x", 511), "k"))
		require.Nil(t, w.clusters.At(0).Get("a", ""))
		require.EqualValues(t, 2, missed(w.Member(0)))
		require.Zero(t, missed(w.Member(1)))
	})
}
