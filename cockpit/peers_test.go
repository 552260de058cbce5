package cockpit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// others is an http.RoundTripper that serves requests with handlers by host, without a network.
type others map[string]http.Handler

func (o others) RoundTrip(r *http.Request) (*http.Response, error) {
	h := o[r.URL.Host]
	if h == nil {
		return nil, errors.New("connection refused")
	}
	rec := httptest.NewRecorder()
	served := r.Clone(r.Context())
	served.RemoteAddr, served.Host = "127.0.0.1:50000", "127.0.0.1"
	h.ServeHTTP(rec, served)
	return rec.Result(), nil
}

func TestPeers_SayWhomTheySee(t *testing.T) {
	to := others{}
	cfg := cockpit.Config{
		Peers: []string{"http://two", "http://three/", "http://nobody", "http://garbage",
			"http://large"},
		PeerClient: &http.Client{Transport: to},
	}
	run(t, cfg, func(w *world) {
		for i, name := range []string{"two", "three"} {
			h, err := cockpit.New(cockpit.Config{})
			require.NoError(t, err)
			h.Show(w.nodes[i+1].sources())
			to[name] = h
		}
		to["garbage"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>")
		})
		to["large"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"name":"`, strings.Repeat("x", 1<<20))
		})
		o := get[api.Overview](w, "overview")
		require.Len(t, o.Peers, 5)
		for i := range 2 {
			require.Equal(t, w.Member(i+1).Address, o.Peers[i].Self)
			require.Len(t, o.Peers[i].Members, 3)
			require.Empty(t, o.Peers[i].Error)
		}
		for _, p := range o.Peers[2:] {
			require.NotEmpty(t, p.Error, p.URL)
		}
		require.Empty(t, o.Problems, "a peer that does not answer is listed but is not a problem")

		odd := w.Member(1)
		w.Unlist(w.Live()[1:2], w.Live()[2:])
		time.Sleep(2 * time.Second)
		o = get[api.Overview](w, "overview")
		found := false
		for _, p := range o.Problems {
			found = found || strings.Contains(p.What, odd.Address+
				" has a different view of the cluster")
		}
		require.True(t, found, "%+v", o.Problems)
	})
}

func TestMetrics_AreThoseOfTheApplication(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "concord_lease_held 1")
	})
	run(t, cockpit.Config{Metrics: metrics}, func(w *world) {
		rec := w.do(request(http.MethodGet, "/metrics", ""))
		require.Equal(t, http.StatusOK, rec.Code)
		require.Contains(t, rec.Body.String(), "concord_lease_held 1")
		far := request(http.MethodGet, "/metrics", "")
		far.RemoteAddr = "10.0.0.9:50000"
		require.Equal(t, http.StatusForbidden, w.do(far).Code)
		require.True(t, get[api.Node](w, "node").Metrics)
	})
}

// explosive is a value that panics when it is formatted.
type explosive struct{}

func (explosive) String() string { panic("no") }

func TestLog_KeepsTheLastLines(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		var out strings.Builder
		log := slog.New(w.Log(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: slog.LevelError}))).With("node", "one")
		log.Debug("never")
		log.Info("first", "bad", explosive{})
		for i := range 300 {
			log.Warn("line", "n", i, "long", strings.Repeat("x", 10_000))
		}
		log.Error("last")
		events := get[api.Page[api.Event]](w, "events").Items
		require.Len(t, events, 256)
		last := events[255]
		require.Equal(t, []string{"error", "log"}, []string{last.Level, last.From})
		require.Equal(t, "last node=one", last.Text)
		for i, e := range events {
			require.Equal(t, events[0].Seq+uint64(i), e.Seq)
			require.Less(t, len(e.Text), 450)
		}
		require.NotContains(t, out.String(), "line", "the next handler applies its own level")
		require.Contains(t, out.String(), "last")
		some := get[api.Page[api.Event]](w, fmt.Sprintf("events?after=%d&limit=2",
			events[250].Seq)).Items
		require.Equal(t, events[254:], some, "the newest events")
	})
}
