package cockpit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// ttl is the TTL of the leases in tests.
const ttl = 10 * time.Second

// world is a simulated cluster of three members with all components. The first member has a
// cockpit.
type world struct {
	*simnet.Cluster
	t     *testing.T
	store memory.Store
	nodes []*part
	*cockpit.Handler
}

// part holds the components of one member.
type part struct {
	*simnet.Member
	session *coordination.Session
	dd      *distributeddata.Replicator
	clerk   *singleton.Singleton
	carts   *sharding.Region[*wrapperspb.StringValue]
}

type idle struct{}

func (idle) Receive(actor.Context) {}

func (w *world) setup(m *simnet.Member) {
	p := &part{Member: m}
	var err error
	p.session, err = coordination.Open(w.store, coordination.Config{Owner: m.ID, TTL: ttl})
	require.NoError(w.t, err)
	p.dd, err = distributeddata.New(m.System, distributeddata.Config{MinMembers: 2})
	require.NoError(w.t, err)
	p.clerk, err = singleton.New(m.System, p.session, singleton.Config{Name: "clerk",
		MinMembers: 3}, func(coordination.Tenure) actor.Actor {
		return idle{}
	})
	require.NoError(w.t, err)
	p.carts, err = sharding.New[*wrapperspb.StringValue](m.System, p.session, p.dd, sharding.Config{
		Type: "cart", Shards: 16, External: true, StableAfter: time.Second},
		func(sharding.Entity) actor.Actor {
			return idle{}
		})
	require.NoError(w.t, err)
	w.nodes = append(w.nodes, p)
}

// sources returns the components of a member for its cockpit.
func (p *part) sources() cockpit.Sources {
	return cockpit.Sources{
		System: p.System, Incarnation: 1,
		Sessions:    map[string]*coordination.Session{"leases": p.session},
		Replicators: map[string]*distributeddata.Replicator{"shop": p.dd},
		Singletons:  map[string]*singleton.Singleton{"clerk": p.clerk},
		Shards:      []cockpit.Shards{p.carts},
	}
}

// run runs a test in virtual time, once the cluster is ready and all shards have homes.
func run(t *testing.T, cfg cockpit.Config, test func(w *world)) {
	t.Helper()
	w := &world{t: t, store: memory.New()}
	simnet.Run(t, simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: time.Millisecond}, Members: 3, Setup: w.setup,
		AppVersion: func(i int) string {
			return []string{0: "1.2.0", 1: "1.1.0", 9: ""}[i]
		},
	}, func(t *testing.T, c *simnet.Cluster) {
		w.Cluster, w.t = c, t
		defer w.close()
		var err error
		w.Handler, err = cockpit.New(cfg)
		require.NoError(t, err)
		w.Show(w.nodes[0].sources())
		for _, p := range w.nodes {
			require.NoError(t, p.dd.Ready(t.Context()))
		}
		for range 100 {
			_, known := w.nodes[0].clerk.Where()
			carts := w.nodes[0].carts.Status()
			if known && carts.Homes()[""] == 0 && carts.Count(sharding.Elsewhere)+carts.Count(
				sharding.Active) == 16 {
				break
			}
			time.Sleep(time.Second)
		}
		test(w)
	})
}

func (w *world) close() {
	w.Handler.Close()
	done := make(chan struct{})
	for _, p := range w.nodes {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = lifecycle.Of(p.System).Stop(ctx, func(ctx context.Context) error {
				return p.session.Close(ctx)
			})
			done <- struct{}{}
		}()
	}
	for range w.nodes {
		<-done
	}
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// request returns a request as sent by a client on the same machine.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:7070", "127.0.0.1:50000"
	return r
}

// do serves a request.
func (w *world) do(r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec
}

// get requests an endpoint, requires status 200 and decodes the response.
func get[T any](w *world, path string) (v T) {
	w.t.Helper()
	rec := w.do(request(http.MethodGet, "/api/v1/"+path, ""))
	require.Equal(w.t, http.StatusOK, rec.Code, "%s: %s", path, rec.Body)
	d := json.NewDecoder(rec.Body)
	d.DisallowUnknownFields()
	require.NoError(w.t, d.Decode(&v), path)
	return v
}

// refused serves a request, requires an error response, and returns its status and error.
func (w *world) refused(r *http.Request) (status int, why string) {
	w.t.Helper()
	rec := w.do(r)
	var e api.Error
	require.NoError(w.t, json.Unmarshal(rec.Body.Bytes(), &e), "%s %s: %s", r.Method, r.URL,
		rec.Body)
	require.Equal(w.t, api.Version, e.Version)
	require.NotEmpty(w.t, e.Error)
	return rec.Code, e.Error
}

type items = crdt.ORSet[string]

// add adds elements to an entry, through the first member.
func (w *world) add(key string, elems ...string) {
	w.t.Helper()
	_, err := distributeddata.NewKey(key, items{}).Update(w.t.Context(), w.nodes[0].dd,
		func(wr *crdt.Writer, v *items) error {
			for _, e := range elems {
				v.Add(wr, e)
			}
			return nil
		}, distributeddata.Majority)
	require.NoError(w.t, err)
}

// fill adds n entries named k/000000, k/000001, …
func (w *world) fill(n int) {
	w.t.Helper()
	require.NoError(w.t, distributeddata.Atomically(w.t.Context(), w.nodes[0].dd,
		func(tx *distributeddata.Tx) error {
			for i := range n {
				distributeddata.NewKey(fmt.Sprintf("k/%06d", i), items{}).In(tx).Add(tx.Writer, "x")
			}
			return nil
		}, distributeddata.Local))
}
