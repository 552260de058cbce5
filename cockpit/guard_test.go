package cockpit_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// slogOf returns a logger whose lines become events of the cockpit.
func slogOf(w *world) *slog.Logger { return slog.New(w.Log(slog.DiscardHandler)) }

func TestGuard_OnlyThisMachineMayLook(t *testing.T) {
	run(t, cockpit.Config{Hosts: []string{"cockpit.example"}}, func(w *world) {
		for name, c := range map[string]struct {
			change func(r *http.Request)
			want   int
		}{
			"loopback": {func(*http.Request) {}, 200},
			"loopback, IPv6": {func(r *http.Request) {
				r.RemoteAddr, r.Host = "[::1]:50000", "[::1]:7070"
			}, 200},
			"by name":              {func(r *http.Request) { r.Host = "LocalHost:7070" }, 200},
			"by a configured name": {func(r *http.Request) { r.Host = "cockpit.example" }, 200},
			"another machine": {func(r *http.Request) {
				r.RemoteAddr = "10.0.0.9:50000"
			}, 403},
			"mapped address": {func(r *http.Request) {
				r.RemoteAddr = "[::ffff:10.0.0.9]:50000"
			}, 403},
			"no address": {func(r *http.Request) { r.RemoteAddr = "@" }, 403},
			"rebound name": {func(r *http.Request) {
				r.Host = "evil.example:7070"
			}, 403},
			"localhost as a subdomain": {func(r *http.Request) {
				r.Host = "localhost.evil.example"
			}, 403},
			"no host": {func(r *http.Request) { r.Host = "" }, 403},
			"proxy": {func(r *http.Request) {
				r.Header.Set("X-Forwarded-For", "10.0.0.9")
			}, 403},
			"proxy with a header of its own": {func(r *http.Request) {
				r.Header.Set("X-Forwarded-Proto", "https")
			}, 403},
			"proxy of an earlier HTTP": {func(r *http.Request) {
				r.ProtoMinor = 0
			}, 403},
			"proxy for another interface": {func(r *http.Request) {
				r.Host = "10.0.0.5:7070"
			}, 403},
			"own page": {func(r *http.Request) {
				r.Header.Set("Origin", "http://127.0.0.1:7070")
			}, 200},
			"other page": {func(r *http.Request) {
				r.Header.Set("Origin", "http://evil.example")
			}, 403},
			"page of another port": {func(r *http.Request) {
				r.Header.Set("Origin", "http://127.0.0.1:8080")
			}, 403},
			"sandboxed page": {func(r *http.Request) {
				r.Header.Set("Origin", "null")
			}, 403},
			"cross-site": {func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}, 403},
			"same-site, not origin": {func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "same-site")
			}, 403},
			"typed": {func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", "none")
			}, 200},
			"TLS, no certificate": {func(r *http.Request) {
				r.RemoteAddr, r.TLS = "10.0.0.9:50000", &tls.ConnectionState{}
			}, 403},
			"TLS, verified": {func(r *http.Request) {
				r.RemoteAddr, r.TLS = "10.0.0.9:50000", &tls.ConnectionState{
					VerifiedChains: [][]*x509.Certificate{{{}}}}
			}, 200},
		} {
			r := request(http.MethodGet, "/api/v1/overview", "")
			c.change(r)
			require.Equal(t, c.want, w.do(r).Code, name)
		}
	})
}

// A client that has failed ten times waits ten seconds for each further attempt. Others do not.
func TestGuard_FailedPasswordsAreLimited(t *testing.T) {
	run(t, cockpit.Config{Authorize: cockpit.Password("secret"), RequestsPerSecond: 1000},
		func(w *world) {
			try := func(from, secret string) int {
				r := request(http.MethodGet, "/api/v1/health", "")
				r.RemoteAddr = from
				r.Header.Set("Authorization", "Bearer "+secret)
				return w.do(r).Code
			}
			const guesser = "10.0.0.9:50000"
			for range 10 {
				require.Equal(t, http.StatusUnauthorized, try(guesser, "guess"))
			}
			require.Equal(t, http.StatusTooManyRequests, try(guesser, "secret"))
			require.Equal(t, http.StatusOK, try("10.0.0.8:50000", "secret"))
			time.Sleep(10 * time.Second)
			require.Equal(t, http.StatusUnauthorized, try(guesser, "guess"))
			require.Equal(t, http.StatusTooManyRequests, try(guesser, "guess"))
			time.Sleep(10 * time.Second)
			require.Equal(t, http.StatusOK, try(guesser, "secret"))
		})
}

func TestGuard_AuthorizeDecides(t *testing.T) {
	run(t, cockpit.Config{Authorize: cockpit.Password("secret")}, func(w *world) {
		far := func(auth string) *http.Request {
			r := request(http.MethodGet, "/api/v1/health", "")
			r.RemoteAddr = "10.0.0.9:50000"
			if auth != "" {
				r.Header.Set("Authorization", auth)
			}
			return r
		}
		rec := w.do(far(""))
		require.Equal(t, http.StatusUnauthorized, rec.Code)
		require.Contains(t, rec.Header().Get("WWW-Authenticate"), "Basic")
		require.Equal(t, http.StatusUnauthorized, w.do(far("Bearer secre")).Code)
		require.Equal(t, http.StatusOK, w.do(far("Bearer secret")).Code)
		basic := far("")
		basic.SetBasicAuth("anybody", "secret")
		require.Equal(t, http.StatusOK, w.do(basic).Code)
		require.Equal(t, http.StatusUnauthorized, w.do(request(http.MethodGet, "/", "")).Code,
			"the page requires authorization too, even on loopback")
		require.Error(t, cockpit.Password("")(far("Bearer "), cockpit.Look),
			"an empty secret rejects everything")
	})
}

func TestGuard_TooManyRequestsAreRefused(t *testing.T) {
	run(t, cockpit.Config{RequestsPerSecond: 2}, func(w *world) {
		refused := 0
		for range 100 {
			if w.do(request(http.MethodGet, "/api/v1/health",
				"")).Code == http.StatusTooManyRequests {
				refused++
			}
		}
		require.Equal(t, 80, refused)
		time.Sleep(time.Second)
		require.Equal(t, 200, w.do(request(http.MethodGet, "/api/v1/health", "")).Code)
	})
}

func TestHostile_WrongRequestsAreRefused(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		w.fill(10)
		long := strings.Repeat("x", 5000)
		for target, want := range map[string]int{
			"/api/v1/keys?limit=0": 400, "/api/v1/keys?limit=501": 400,
			"/api/v1/keys?limit=-1": 400, "/api/v1/keys?limit=99999999999999999999": 400,
			"/api/v1/keys?limit=x":      400,
			"/api/v1/keys?after=%21%21": 400, "/api/v1/keys?after=" + long: 400,
			"/api/v1/keys?prefix=" + long: 400, "/api/v1/keys?prefix=%ff": 400,
			"/api/v1/keys?after=" + strings.Repeat("A", 1000): 400,
			"/api/v1/keys?replicator=none":                    404, "/api/v1/value?key=x": 404,
			"/api/v1/value?key=" + long:   400,
			"/api/v1/leases?session=none": 404, "/api/v1/leases?after=%21": 400,
			"/api/v1/lease?name=": 400, "/api/v1/lease?name=" + long: 400,
			"/api/v1/shards?type=none": 404, "/api/v1/shards?after=x": 400,
			"/api/v1/shards?limit=0": 400,
			"/api/v1/events?after=x": 400, "/api/v1/events?limit=257": 400,
			"/api/v1/nothing": 404, "/api/v2/overview": 404, "/metrics": 404, "/static/app.js": 404,
			"/../go.mod": 404, "/api/v1/../v1/overview": 404, "//": 404,
		} {
			status, _ := w.refused(request(http.MethodGet, target, ""))
			require.Equal(t, want, status, "%.80s", target)
		}
		require.Len(t, get[api.Page[api.Shard]](w, "shards?after=4000000000").Items, 0)
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS",
			"TRACE", "NONSENSE"} {
			r := request(method, "/api/v1/overview", "")
			status, _ := w.refused(r)
			require.Equal(t, http.StatusMethodNotAllowed, status, method)
		}
		status, _ := w.refused(request(http.MethodGet, "/api/v1/actions/release", ""))
		require.Equal(t, http.StatusForbidden, status)
	})
}

func TestConfig_ValidateNamesEveryProblem(t *testing.T) {
	_, err := cockpit.New(cockpit.Config{
		Refresh: time.Millisecond, MaxViewers: -1, RequestsPerSecond: -1, Actions: true,
		Peers: []string{"ftp://x"}, Hide: []string{"a*b"}, Hosts: []string{"a:1"},
	})
	require.ErrorIs(t, err, cockpit.ErrInvalid)
	for _, name := range []string{"Refresh", "MaxViewers", "RequestsPerSecond", "Actions", "Peers",
		"Hide", "Hosts"} {
		require.ErrorContains(t, err, name)
	}
}

func TestActions_AreOffUnlessAllowedAndAuthorised(t *testing.T) {
	release := `{"session":"leases","name":"x","token":1}`
	run(t, cockpit.Config{}, func(w *world) {
		status, _ := w.refused(action("release", release))
		require.Equal(t, http.StatusForbidden, status)
	})
	run(t, cockpit.Config{Authorize: everybody}, func(w *world) {
		status, _ := w.refused(action("release", release))
		require.Equal(t, http.StatusForbidden, status)
	})
	onlyLook := func(_ *http.Request, p cockpit.Permission) error {
		if p == cockpit.Act {
			return errors.New("no")
		}
		return nil
	}
	run(t, cockpit.Config{Actions: true, Authorize: onlyLook}, func(w *world) {
		status, _ := w.refused(action("release", release))
		require.Equal(t, http.StatusUnauthorized, status)
		require.Equal(t, http.StatusOK, w.do(request(http.MethodGet, "/api/v1/health", "")).Code)
	})
}

func TestActions_ReleaseAndForget(t *testing.T) {
	run(t, cockpit.Config{Actions: true, Authorize: everybody}, func(w *world) {
		g, err := w.nodes[1].session.Lease("x").TryAcquire(w.t.Context())
		require.NoError(t, err)
		release := `{"session":"leases","name":"x","token":1}`

		form := action("release", release)
		form.Header.Set("Content-Type", "text/plain")
		require.Equal(t, http.StatusUnsupportedMediaType, w.do(form).Code,
			"a form of another site can send this type")
		bare := action("release", release)
		bare.Header.Del("X-Concord-Action")
		require.Equal(t, http.StatusUnsupportedMediaType, w.do(bare).Code)
		typed := action("release", release)
		typed.Header.Set("Sec-Fetch-Site", "none")
		require.Equal(t, http.StatusForbidden, w.do(typed).Code)
		foreign := action("release", release)
		foreign.Header.Set("Origin", "http://evil.example")
		require.Equal(t, http.StatusForbidden, w.do(foreign).Code)
		for body, want := range map[string]int{
			"": 400, "{": 400, `{"session":"leases","name":"x","token":1} {}`: 400,
			`{"what":1}`: 400, `{"token":-1}`: 400,
			`{"session":"none","name":"x","token":1}`:                                     404,
			`{"session":"leases","name":"","token":1}`:                                    400,
			`{"session":"leases","name":"x","token":7}`:                                   409,
			`{"session":"leases","name":"` + strings.Repeat("x", 10_000) + `","token":1}`: 400,
		} {
			require.Equal(t, want, w.do(action("release", body)).Code, "%.80s", body)
		}
		require.NoError(t, g.Check())
		require.Equal(t, http.StatusOK, w.do(action("release", release)).Code)
		require.False(t, get[api.Holder](w, "lease?name=x").Held)
		require.Contains(t, w.do(request(http.MethodGet, "/api/v1/events", "")).Body.String(),
			"operator action: release lease")

		require.Equal(t, http.StatusNotFound,
			w.do(action("forget", `{"replicator":"none","member":"a"}`)).Code)
		require.Equal(t, http.StatusBadRequest,
			w.do(action("forget", `{"replicator":"shop","member":"nobody:1"}`)).Code)
		gone := w.Member(2)
		w.Crash(gone)
		w.Expel(gone)
		time.Sleep(10 * time.Second)
		require.Equal(t, 3, get[[]api.Replicator](w, "replicators")[0].Counted)
		rec := w.do(action("forget", `{"replicator":"shop","member":"`+gone.Address+`"}`))
		require.Equal(t, http.StatusOK, rec.Code, "%s", rec.Body)
		for range 60 {
			time.Sleep(time.Second)
			if get[[]api.Replicator](w, "replicators")[0].Counted == 2 {
				break
			}
		}
		require.Equal(t, 2, get[[]api.Replicator](w, "replicators")[0].Counted)
	})
}
