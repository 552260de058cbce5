package noderun_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"regexp"
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
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/gate"
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
type hands struct{ lives chan *hand }

func newHands() hands { return hands{make(chan *hand, 10)} }

func (h hands) provider() (cluster.ClusterProvider, error) {
	p := &hand{}
	h.lives <- p
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

func answer(h *node.Health, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
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

func TestRun_AMemberThatIsDroppedBeginsAnotherLife(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := newHands()
	cfg := quiet(h)
	cfg.Health = &node.Health{}
	nodes, ends := make(chan *node.Node, 2), make(chan error, 2)
	done := background(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			nodes <- n
			<-ctx.Done()
			ends <- context.Cause(ctx)
			return nil
		})
		// A user actor that would keep running.
		n.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				ends <- errors.New("user actor stopped")
			}
		}))
		return nil
	})
	first := <-nodes
	(<-h.lives).list(false)
	require.ErrorIs(t, <-ends, membership.ErrDropped)
	require.ErrorIs(t, first.Context().Err(), context.Canceled)
	require.ErrorContains(t, <-ends, "user actor stopped")
	second := <-nodes
	require.GreaterOrEqual(t, second.Incarnation, 2) // the port may be in use for a moment
	require.NotEqual(t, first.System.ID, second.System.ID)
	require.Equal(t, first.System.Address(), second.System.Address(), "the port is kept")
	require.Eventually(t, func() bool {
		return cfg.Health.Ready() == nil
	}, patience, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// TestRun_RemovedDuringTheFirstStart drops a member while its first incarnation waits for a
// component. The start ends at once, and the session works in the next incarnation.
func TestRun_RemovedDuringTheFirstStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, cfg, store := newHands(), quiet(newHands()), memory.New()
	cfg.Provider, cfg.StartTimeout = h.provider, time.Hour
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	waits := make(chan struct{})
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		if n.Incarnation == 1 {
			go func() { <-waits; (<-h.lives).list(false) }()
			lifecycle.OnStart(n.System, "test", func(ctx context.Context) error {
				close(waits)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}
		n.Go(func(context.Context) error {
			g, err := n.Session.Lease("x").TryAcquire(ctx)
			if err != nil {
				return err // before the end of the context, which would hide it
			}
			defer cancel()
			return g.Release(context.Background())
		})
		return nil
	})
	require.NoError(t, err)
}

// TestRun_GuardAndMajorityAreReleasedAtTheEnd also shows that a single member opens its gate with
// both.
func TestRun_GuardAndMajorityAreReleasedAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	store := memory.New()
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	cfg.Guard = "guard/a"
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			defer cancel()
			for !gate.Of(n.System).State().Open {
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		return nil
	}))
	other, err := coordination.Open(store, coordination.Config{})
	require.NoError(t, err)
	for _, name := range []string{"guard/a", "concord.majority/" + cfg.Cluster} {
		g, err := other.Lease(name).TryAcquire(t.Context())
		require.NoError(t, err, name)
		require.NoError(t, g.Release(t.Context()))
	}
	require.NoError(t, other.Close(t.Context()))
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

func TestRun_ExitsInsteadOfRejoiningIfToldTo(t *testing.T) {
	h := newHands()
	cfg := quiet(h)
	cfg.OnSplit = node.Exit
	err := node.Run(t.Context(), cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			(<-h.lives).list(false)
			<-ctx.Done()
			return nil
		})
		return nil
	})
	require.ErrorIs(t, err, node.ErrSplit)
	require.ErrorIs(t, err, membership.ErrDropped)
	require.Equal(t, 5, node.ExitCode(err))
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

func TestRun_SaysWhatTheStartWaitsFor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	none := func(*node.Node) error { return nil }

	cfg := quiet(newHands())
	cfg.Remote.Port = l.Addr().(*net.TCPAddr).Port
	err = node.Run(t.Context(), cfg, none)
	require.ErrorIs(t, err, node.ErrStart)
	require.ErrorContains(t, err, "address already in use")

	cfg = quiet(newHands())
	cfg.Provider = func() (cluster.ClusterProvider, error) {
		return &hand{refuses: errors.New("no such server")}, nil
	}
	err = node.Run(t.Context(), cfg, none)
	require.ErrorIs(t, err, node.ErrStart)
	require.ErrorContains(t, err, "no such server")

	for timeout := time.Second; ; timeout *= 2 { // until the member sees itself in time
		cfg = quiet(newHands())
		cfg.MinMembers, cfg.StartTimeout = 3, timeout
		err = node.Run(t.Context(), cfg, none)
		require.ErrorIs(t, err, node.ErrStart)
		require.Equal(t, 3, node.ExitCode(err))
		if regexp.MustCompile(`3 members needed, after \d+s it sees 1: 127.0.0.1:`).MatchString(
			err.Error()) {
			break
		}
		require.Less(t, timeout, patience, "%v", err)
	}

	cfg = quiet(newHands())
	cfg.StartTimeout = time.Second
	release := make(chan struct{})
	defer close(release)
	err = node.Run(t.Context(), cfg, func(*node.Node) error { <-release; return nil })
	require.ErrorContains(t, err, "register: has not returned after 1s")
}

// TestRun_NamesTheHostsThatAreNoMembers starts a member that waits for hosts of a wrong list.
func TestRun_NamesTheHostsThatAreNoMembers(t *testing.T) {
	free := ports.Free(t, 3)
	remoting := net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
	closed := net.JoinHostPort("127.0.0.1", strconv.Itoa(free[2]))
	var log child.Screen
	cfg := quiet(newHands())
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Remote.Port, cfg.MinMembers, cfg.StartTimeout = free[0], 2, 4*time.Second
	cfg.Provider = automanaged.New(automanaged.Config{
		Port: free[1], Refresh: 100 * time.Millisecond,
		Hosts: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(free[1])), remoting, closed,
			"nowhere.invalid:6330"}})
	err := node.Run(t.Context(), cfg, func(*node.Node) error { return nil })
	require.ErrorIs(t, err, node.ErrStart)
	for _, part := range []string{remoting + " (", "is it the port of remoting?", closed + " (",
		"connection refused: check that the member runs", "nowhere.invalid:6330 (",
		"check the name"} {
		require.ErrorContains(t, err, part)
	}
	require.Contains(t, log.String(), "level=WARN msg=\"host does not answer as a member")
}

// TestRun_HealthPortIsOnTheHostOfRemoting, and at no other address of the machine.
func TestRun_HealthPortIsOnTheHostOfRemoting(t *testing.T) {
	port := ports.Free(t, 1)[0]
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := quiet(newHands())
	cfg.Provider = automanaged.New(automanaged.Config{Port: port, Hosts: []string{at}})
	l, err := net.Listen("tcp", at)
	require.NoError(t, err)
	err = node.Run(ctx, cfg, func(*node.Node) error { return nil })
	require.ErrorContains(t, err, "address already in use")
	require.ErrorContains(t, err, "port "+strconv.Itoa(port))
	require.NoError(t, l.Close())
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error {
			defer cancel()
			c, err := net.Dial("tcp", at)
			require.NoError(t, err)
			require.NoError(t, c.Close())
			_, err = net.Dial("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
			require.Error(t, err)
			return nil
		})
		return nil
	}))
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

// TestHealth_NamesComponentsThatAreNotReady runs one member where two are needed.
func TestHealth_NamesComponentsThatAreNotReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	cfg.Health = &node.Health{}
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		_, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 2})
		n.Go(func(context.Context) error {
			defer cancel()
			require.Eventually(t, func() bool { // the replicator learns of its member
				err := cfg.Health.Ready()
				return err != nil && strings.Contains(err.Error(),
					"replicator ddata: 1 of 2 members seen")
			}, patience, time.Millisecond)
			require.NoError(t, cfg.Health.Live())
			return nil
		})
		return err
	}))
}

// unreachable is a store that stops answering.
type unreachable struct {
	memory.Store
	away atomic.Bool
}

func (u *unreachable) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if u.away.Load() {
		return "", errors.New("store away")
	}
	return u.Store.Swap(ctx, name, old, next)
}

// While no member was missing, /readyz said nothing about a lease store that did not answer.
func TestRun_ReadyzSaysThatTheLeaseStoreDoesNotAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg, store := quiet(newHands()), &unreachable{Store: memory.New()}
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	cfg.Health, cfg.Session.TTL = new(node.Health), time.Second
	_ = node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			defer cancel()
			grant, err := n.Session.Lease("billing").TryAcquire(ctx)
			if err != nil {
				return err
			}
			store.away.Store(true)
			<-grant.Context().Done()
			w := httptest.NewRecorder()
			cfg.Health.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			require.Contains(t, w.Body.String(), "the lease store does not answer: ")
			return nil
		})
		return nil
	}) // it cannot release its leases, if it still has some
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
				p := <-h.lives
				p.others = []*cluster.Member{{Id: "other", Host: "127.0.0.1", Port: 1}}
				p.list(false) // dropped
				<-ctx.Done()
				return nil
			}
			text, _, err := members.Load(ctx)
			require.NoError(t, err)
			require.Contains(t, string(text), `"epoch":2,`, "one place, taken in each life")
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
