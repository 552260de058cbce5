package noderun_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// TestHealth_OverHTTP serves Health as a program would.
func TestHealth_OverHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	cfg.Health = &node.Health{}
	server := httptest.NewServer(cfg.Health)
	defer server.Close()
	get := func(path string) (int, string) {
		res, err := server.Client().Get(server.URL + path)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	code, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "node: not running\n", body)
	up := make(chan string, 1)
	done := background(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error { up <- n.System.Address(); return nil })
		return nil
	})
	address := <-up
	code, body = get("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\nmembers: 1 of 1: "+address+"\n", body)
	code, _ = get("/livez")
	require.Equal(t, http.StatusOK, code)
	code, _ = get("/")
	require.Equal(t, http.StatusNotFound, code)
	cancel()
	require.NoError(t, <-done)
	code, body = get("/livez")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "node: stopped\n", body)
	server.Client().CloseIdleConnections()
}

func answer(h *node.Health, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
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

// The process ended neither at SIGTERM nor after StartTimeout while the Provider or Store function
// was blocked.
func TestRun_EndsBesideAFunctionThatDoesNotReturn(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for _, what := range []string{"provider", "lease store", "register"} {
		for _, asked := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			block := func(here string) {
				if here == what {
					if asked {
						stop()
					}
					<-release
				}
			}
			h := newHands()
			cfg := quiet(h)
			cfg.StartTimeout = time.Second
			if asked {
				cfg.StartTimeout, cfg.StopTimeout = time.Hour, time.Second
			}
			cfg.Provider = func() (cluster.ClusterProvider, error) {
				block("provider")
				return h.provider()
			}
			cfg.Store = func() (coordination.Store, error) {
				block("lease store")
				return memory.New(), nil
			}
			done := background(ctx, cfg, func(*node.Node) error { block("register"); return nil })
			var err error
			select {
			case err = <-done:
			case <-time.After(patience):
				require.Fail(t, "Run waits for "+what)
			}
			stop()
			require.ErrorContains(t, err, what+": ")
			require.ErrorContains(t, err, "has not returned")
			require.Equal(t, asked, errors.Is(err, node.ErrStop))
		}
	}
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
