package cockpit

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node"
)

// ErrInvalid is matched by the errors about a Config, and of Handler.Attach without a node.
var ErrInvalid = errors.New("cockpit: invalid configuration")

// Permission is the permission that a request requires.
type Permission int

// Permissions.
const (
	Look Permission = iota // to read
	Act                    // to release leases, to move shards and to forget members
)

// Config configures a Handler. The zero value shows everything except values, to clients on the
// same machine.
type Config struct {
	// Name is the display name of the member. Default: its address.
	Name string
	// Health is the health of the node. If it is nil, health is not shown.
	Health *node.Health
	// Metrics serves /metrics, for instance promhttp.Handler(). If it is nil, /metrics is not
	// served.
	Metrics http.Handler
	// Values selects the entries whose values are shown; see ValuesOf. Default: none.
	Values []Values
	// Hide lists entries and leases that are not shown. Each item is a name, or a prefix followed
	// by a star. With Hide, events are kept without the attributes of their log lines.
	Hide []string
	// HideOwners omits the owners of leases and sessions, the failures of leases, and the
	// attributes of log lines in events.
	HideOwners bool

	// Authorize decides about each request, including requests from the same machine. If it returns
	// an error, the request is rejected with status 401. If Authorize is nil, the handler serves
	// clients on the loopback interface and clients with a verified TLS client certificate.
	// Authorize must be safe for concurrent use. See Password.
	Authorize func(*http.Request, Permission) error
	// Hosts lists the host names, without port, under which clients reach the cockpit, in addition
	// to IP addresses and localhost.
	Hosts []string
	// Actions permits clients to release leases, to move shards and to forget members. It requires
	// Authorize.
	Actions bool

	// Peers are the URLs of the cockpits of other members, at most 64. While a client is active,
	// the handler asks each peer once a second for its view of the cluster.
	Peers []string
	// PeerClient sends the requests to Peers. It must add the credentials that the Authorize of the
	// peers requires. Default: a client without a proxy that does not follow redirects.
	PeerClient *http.Client

	// Refresh is the interval between snapshots while pages are open. A snapshot takes some
	// microseconds, plus a microsecond for each lease. Default 500ms, from 100ms to 1m.
	Refresh time.Duration
	// MaxViewers is the maximum number of open pages; the handler rejects more with status 503.
	// Default 16, at most 1000.
	MaxViewers int
	// RequestsPerSecond limits the rate of requests of all clients together; the handler rejects
	// requests above it with status 429. Bursts may be ten times as large. Default 50, at most
	// 10,000.
	RequestsPerSecond int
}

// validate reports all problems at once. The errors match ErrInvalid.
func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if c.Refresh != 0 && (c.Refresh < 100*time.Millisecond || c.Refresh > time.Minute) {
		bad("Refresh is %v, must be from 100ms to 1m", c.Refresh)
	}
	if c.MaxViewers < 0 || c.MaxViewers > 1000 {
		bad("MaxViewers is %d, must be from 1 to 1000", c.MaxViewers)
	}
	if c.RequestsPerSecond < 0 || c.RequestsPerSecond > 10_000 {
		bad("RequestsPerSecond is %d, must be from 1 to 10000", c.RequestsPerSecond)
	}
	if c.Actions && c.Authorize == nil {
		bad("Actions requires Authorize")
	}
	if len(c.Peers) > maxPeers {
		bad("Peers has %d URLs, must have at most %d", len(c.Peers), maxPeers)
	}
	for _, p := range c.Peers {
		if u, err := url.Parse(p); err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https" {
			bad("Peers: %q must be an http or https URL", p)
		}
	}
	for _, h := range c.Hide {
		if i := strings.Index(h, "*"); h == "" || i >= 0 && i < len(h)-1 {
			bad("Hide: %q must be a name, or a prefix followed by a star", h)
		}
	}
	for _, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, ":/ *") {
			bad("Hosts: %q must be a host name without a port", h)
		}
	}
	return settings.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Refresh == 0 {
		c.Refresh = 500 * time.Millisecond
	}
	if c.MaxViewers == 0 {
		c.MaxViewers = 16
	}
	if c.RequestsPerSecond == 0 {
		c.RequestsPerSecond = 50
	}
	if c.PeerClient == nil {
		c.PeerClient = &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}
	}
	return c
}

// errRefused does not reveal why a request was rejected.
var errRefused = errors.New("not authorized")

// Password returns a Config.Authorize that accepts a secret. Clients send it as a bearer token, as
// concordctl does, or as the password of any user, as browsers do. Use it with TLS, or on the same
// machine.
func Password(secret string) func(*http.Request, Permission) error {
	return func(r *http.Request, _ Permission) error {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, given, _ = r.BasicAuth()
		}
		if secret == "" || subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 {
			return errRefused
		}
		return nil
	}
}
