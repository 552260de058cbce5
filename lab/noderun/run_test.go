package noderun_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/singleton"
)

// hand is a provider controlled by a test: it lists its member at the start.
type hand struct {
	mu      sync.Mutex
	c       *cluster.Cluster
	others  []*cluster.Member
	refuses error
}

func (h *hand) StartMember(c *cluster.Cluster) error {
	if h.refuses != nil {
		return h.refuses
	}
	h.mu.Lock()
	h.c = c
	h.mu.Unlock()
	go h.list(true)
	return nil
}

func (h *hand) StartClient(*cluster.Cluster) error { return nil }
func (h *hand) Shutdown(bool) error                { return nil }

// list lists the member itself, or only others.
func (h *hand) list(self bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append([]*cluster.Member(nil), h.others...)
	if self {
		host, port, _ := h.c.ActorSystem.GetHostPort()
		all = append(all, &cluster.Member{Id: h.c.ActorSystem.ID, Host: host, Port: int32(port)})
	}
	h.c.MemberList.UpdateClusterTopology(all)
}

// hands creates a provider for each incarnation.
type hands struct{ incarnations chan *hand }

func newHands() hands { return hands{make(chan *hand, 10)} }

func (h hands) provider() (cluster.ClusterProvider, error) {
	p := &hand{}
	h.incarnations <- p
	return p, nil
}

// quiet returns a working configuration with a provider of the test.
func quiet(h hands) node.RunConfig {
	return node.RunConfig{
		Cluster: "run-test", Provider: h.provider, Logger: slog.New(slog.DiscardHandler),
		NoSignals:    true,
		StartTimeout: patience, StopTimeout: patience,
	}
}

// background runs Run and returns its error on the channel.
func background(ctx context.Context, cfg node.RunConfig,
	register func(*node.Node) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx, cfg, register) }()
	return done
}

func TestRun_ServesUntilTheContextEndsAndStopsInOrder(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var mu sync.Mutex
	var story []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		story = append(story, what)
	}
	cfg := quiet(newHands())
	cfg.Health = &node.Health{}
	store := memory.New()
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	var session *coordination.Session
	require.ErrorContains(t, cfg.Health.Live(), "not running")
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		require.Equal(t, 1, n.Incarnation)
		session = n.Session
		for _, p := range []lifecycle.Phase{lifecycle.Session, lifecycle.Replicator,
			lifecycle.Leases, lifecycle.Singleton, lifecycle.Sharding} {
			_, err := lifecycle.OnStop(n.System, p, "test", func(context.Context) error {
				note(p.String())
				return nil
			})
			require.NoError(t, err)
		}
		n.Go(func(ctx context.Context) error {
			require.NoError(t, cfg.Health.Ready())
			require.NoError(t, cfg.Health.Live())
			require.Equal(t, 200, answer(cfg.Health, "/readyz"))
			g, err := n.Session.Lease("x").Acquire(ctx)
			require.NoError(t, err)
			note("work")
			cancel(errors.New("enough"))
			<-ctx.Done()
			require.ErrorContains(t, context.Cause(ctx), "enough")
			require.NoError(t, g.Release(context.WithoutCancel(ctx)))
			note("work ended")
			return errors.New("of no interest any more")
		})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"work", "work ended", "sharding", "singleton", "leases", "replicator",
		"session"}, story)
	require.Error(t, cfg.Health.Live())
	require.Equal(t, 503, answer(cfg.Health, "/livez"))
	_, err = session.Lease("y").TryAcquire(t.Context())
	require.ErrorIs(t, err, coordination.ErrClosed)
	other, err := coordination.Open(store, coordination.Config{})
	require.NoError(t, err)
	g, err := other.Lease("x").TryAcquire(t.Context())
	require.NoError(t, err, "released")
	require.NoError(t, g.Release(t.Context()))
	require.NoError(t, other.Close(t.Context()))
}

// TestRun_StopsDuringTheStart ends the context while register runs, and while the member waits for
// others, as the first member of a cluster does.
func TestRun_StopsDuringTheStart(t *testing.T) {
	for name, register := range map[string]func(n *node.Node, reached func()) error{
		"register": func(n *node.Node, reached func()) error {
			reached()
			<-n.Context().Done()
			return n.Context().Err()
		},
		"members": func(n *node.Node, reached func()) error {
			lifecycle.OnStart(n.System, "test", func(context.Context) error {
				reached()
				return nil
			})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cfg := quiet(newHands())
			cfg.MinMembers, cfg.StartTimeout = 2, time.Hour
			done := background(ctx, cfg, func(n *node.Node) error { return register(n, cancel) })
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(patience):
				t.Fatal("Run waits for the start, although its context has ended")
			}
		})
	}
}

// TestRun_FewerThanMinMembersHostNothing starts a member that stays alone, with a lease store that
// answers and in which nobody hosts, and waits for a dozen TTLs.
func TestRun_FewerThanMinMembersHostNothing(t *testing.T) {
	cfg := quiet(newHands())
	cfg.Store = func() (coordination.Store, error) { return memory.New(), nil }
	cfg.Session.TTL, cfg.MinMembers, cfg.StartTimeout = 250*time.Millisecond, 2, 3*time.Second
	var instances atomic.Int64
	err := node.Run(t.Context(), cfg, func(n *node.Node) error {
		_, err := singleton.New(n.System, n.Session, singleton.Config{Name: "clerk",
			Settle: time.Millisecond}, func(coordination.Tenure) actor.Actor {
			instances.Add(1)
			return actor.ReceiveFunc(func(actor.Context) {})
		})
		return err
	})
	require.ErrorIs(t, err, node.ErrStart)
	require.Zero(t, instances.Load())
}

func TestRun_FailuresOfUserCodeEndItAndAreReturned(t *testing.T) {
	boom := errors.New("boom")
	for name, f := range map[string]func(context.Context) error{
		"error":  func(context.Context) error { return boom },
		"panic":  func(context.Context) error { panic(boom) },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		want := map[string]string{"error": "boom", "panic": "panic: boom\ngoroutine ",
			"goexit": "runtime.Goexit"}[name]
		t.Run("register/"+name, func(t *testing.T) {
			err := node.Run(t.Context(), quiet(newHands()), func(n *node.Node) error {
				return f(n.Context())
			})
			require.ErrorContains(t, err, "register: "+want)
			require.Equal(t, 1, node.ExitCode(err))
		})
		t.Run("work/"+name, func(t *testing.T) {
			err := node.Run(t.Context(), quiet(newHands()), func(n *node.Node) error {
				n.Go(f)
				return nil
			})
			require.ErrorContains(t, err, "work: "+want)
		})
		t.Run("provider/"+name, func(t *testing.T) {
			cfg := quiet(newHands())
			cfg.Provider = func() (cluster.ClusterProvider, error) { return nil, f(t.Context()) }
			err := node.Run(t.Context(), cfg, func(*node.Node) error { return nil })
			require.ErrorIs(t, err, node.ErrStart)
			require.ErrorContains(t, err, "provider: "+want)
			require.Equal(t, 3, node.ExitCode(err))
		})
		t.Run("store/"+name, func(t *testing.T) {
			cfg := quiet(newHands())
			cfg.Store = func() (coordination.Store, error) { return nil, f(t.Context()) }
			require.ErrorContains(t, node.Run(t.Context(), cfg, func(*node.Node) error {
				return nil
			}), "lease store: "+want)
		})
	}
}

func TestRun_WorkThatDoesNotReturnIsNamed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	cfg.StopTimeout = 8 * time.Second // a quarter is for the work; all ends before the next test
	release, stopped := make(chan struct{}), make(chan struct{})
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error { cancel(); <-release; return nil })
		_, err := lifecycle.OnStop(n.System, lifecycle.Replicator, "test",
			func(context.Context) error {
				close(stopped)
				return nil
			})
		return err
	})
	close(release)
	require.ErrorIs(t, err, node.ErrStop)
	require.ErrorContains(t, err, "work given to Go has not returned")
	require.Equal(t, 4, node.ExitCode(err))
	<-stopped
}

func TestRun_RefusesWhatCannotWork(t *testing.T) {
	err := node.Run(t.Context(), node.RunConfig{
		MinMembers: -1, RejoinsPerHour: -2, Patience: time.Nanosecond, OnSplit: 7,
		Remote: node.Config{Port: -1},
		Store: func() (coordination.Store, error) {
			return nil, nil
		}, Session: coordination.Config{TTL: -1},
	}, func(*node.Node) error { return nil })
	require.ErrorIs(t, err, node.ErrInvalid)
	for _, part := range []string{"Cluster,", "Provider must", "MinMembers (-1)",
		"RejoinsPerHour (-2)", "Patience (1ns)",
		"OnSplit (7)", "Port (-1)", "Session: "} {
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, 2, node.ExitCode(err))
	require.ErrorIs(t, node.Run(t.Context(), quiet(newHands()), nil), node.ErrInvalid)
}

// The guard of a process knows one member: a second one would be judged by the view of the first.
func TestRun_OneMemberInAProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	nothing := func(*node.Node) error { return nil }
	require.NoError(t, node.Run(ctx, quiet(newHands()), func(n *node.Node) error {
		n.Go(func(context.Context) error {
			defer cancel()
			err := node.Run(ctx, quiet(newHands()), nothing)
			require.ErrorIs(t, err, node.ErrInvalid)
			require.ErrorContains(t, err, "another member runs in this process")
			return nil
		})
		return nil
	}))
	require.NoError(t, node.Run(ctx, quiet(newHands()), nothing), "one after the other")
}

// The leases that could not be released were listed twice: by the last incarnation and by Run.
func TestRun_TheErrorOfTheSessionIsReportedOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg, store := quiet(newHands()), &unreachable{Store: memory.New()}
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	cfg.Session.TTL = time.Second
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error {
			_, err := n.Session.Lease("billing").TryAcquire(ctx)
			store.away.Store(true)
			cancel()
			return err
		})
		return nil
	})
	require.ErrorIs(t, err, node.ErrStop)
	require.Equal(t, 1, strings.Count(err.Error(), `lease "billing"`), "%v", err)
}

// A membership kept as a document of the lease store is found again in the next incarnation, and is
// left in order at the end.
func TestRun_TheMembershipMayBeADocumentOfTheLeaseStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, cfg, store := newHands(), quiet(newHands()), memory.New()
	cfg.Provider = h.provider
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		members, err := n.Document("run-test.members")
		require.NoError(t, err)
		_, err = n.Document("")
		require.ErrorIs(t, err, coordination.ErrInvalid)
		dd, err := distributeddata.New(n.System, distributeddata.Config{Membership: members})
		require.NoError(t, err)
		n.Go(func(ctx context.Context) error {
			if err := dd.Ready(ctx); err != nil {
				return err
			}
			require.Equal(t, 1, dd.Status().Counted)
			if n.Incarnation == 1 {
				p := <-h.incarnations
				p.others = []*cluster.Member{{Id: "other", Host: "127.0.0.1", Port: 1}}
				p.list(false) // dropped
				<-ctx.Done()
				return nil
			}
			text, _, err := members.Load(ctx)
			require.NoError(t, err)
			require.Contains(t, string(text), `"epoch":2,`, "one place, taken in each incarnation")
			cancel()
			return nil
		})
		return nil
	})
	require.NoError(t, err)
	d, err := coordination.NewDocument(store, "run-test.members")
	require.NoError(t, err)
	text, _, err := d.Load(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(text), `"stage":"gone"`)
	require.NotContains(t, string(text), `"stage":"in"`)
}

func TestRun_WithoutAStoreThereAreNoDocuments(t *testing.T) {
	err := node.Run(t.Context(), quiet(newHands()), func(n *node.Node) error {
		_, err := n.Document("x")
		return err
	})
	require.ErrorIs(t, err, node.ErrInvalid)
	require.ErrorContains(t, err, "RunConfig.Store must be set")
}

// TestRun_OnBothLoopbackAddresses also covers how Proto.Actor joins hosts and ports.
func TestRun_OnBothLoopbackAddresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		port := ports.Free(t, 1)[0]
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quiet(newHands())
		cfg.Remote.Host = host
		cfg.Provider = automanaged.New(automanaged.Config{Port: port, Hosts: []string{
			net.JoinHostPort(host, strconv.Itoa(port))}})
		require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
			n.Go(func(context.Context) error {
				defer cancel()
				at, _, err := net.SplitHostPort(n.System.Address())
				require.NoError(t, err)
				require.True(t, net.ParseIP(at).IsLoopback(), at)
				self := n.Cluster.MemberList.Members().Members()[0]
				require.Equal(t, n.System.Address(), self.Address())
				return nil
			})
			return nil
		}), host)
	}
}

// The members of a cluster see the roles and the version that Config sets: preferred hosts depend
// on them.
func TestRun_AnnouncesRolesAndVersion(t *testing.T) {
	port := ports.Free(t, 1)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	cfg.Remote.Roles, cfg.Remote.AppVersion = []string{"web"}, "1.2.3"
	cfg.Provider = automanaged.New(automanaged.Config{Port: port, Hosts: []string{
		net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}})
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error {
			defer cancel()
			view := membership.Attach(n.System).View()
			m, known := view.Oldest("web")
			require.True(t, known)
			require.Equal(t, n.System.Address(), m.Address)
			require.Equal(t, "1.2.3", m.AppVersion)
			return nil
		})
		return nil
	}))
}
