package cockpit

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// refusal is the reason why the handler rejects a request.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

// admit decides whether the handler may serve a request. Its cost is bounded.
func (h *Handler) admit(r *http.Request, p Permission) *refusal {
	if !h.knownHost(r.Host) {
		return &refusal{http.StatusForbidden,
			"the Host header must be an IP address, localhost or one of Config.Hosts"}
	}
	if !sameSite(r) {
		return &refusal{http.StatusForbidden, "the request comes from another site"}
	}
	if no := h.authorized(r, p); no != nil {
		return no
	}
	if !h.limit.take(time.Now()) {
		return &refusal{http.StatusTooManyRequests, "too many requests; try again in a second"}
	}
	return nil
}

func (h *Handler) authorized(r *http.Request, p Permission) *refusal {
	switch {
	case h.cfg.Authorize != nil:
		from := client(r.RemoteAddr)
		if h.failed.tooMany(from, time.Now()) {
			return &refusal{http.StatusTooManyRequests, "too many failed attempts; try again later"}
		}
		if err := h.cfg.Authorize(r, p); err != nil {
			if r.Header.Get("Authorization") != "" {
				h.failed.add(from, time.Now())
			}
			return &refusal{http.StatusUnauthorized, "not authorized"}
		}
		return nil
	case p != Look:
		return &refusal{http.StatusForbidden,
			"actions are disabled: see Config.Actions and Config.Authorize"}
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	case forwarded(r):
		return &refusal{http.StatusForbidden,
			"requests forwarded by a proxy require Config.Authorize"}
	case !loopback(r.RemoteAddr):
		return &refusal{http.StatusForbidden,
			"remote clients require Config.Authorize or a verified TLS client certificate"}
	}
	return nil
}

// forwarded reports whether a request looks like one that a proxy has forwarded: a header of
// proxies, HTTP/1.0, or the address of another interface.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains([]string{"Forwarded",
			"X-Real-Ip", "X-Client-Ip", "X-Original-Host", "True-Client-Ip", "Cf-Connecting-Ip",
			"Via"}, name) {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1) || elsewhere(r.Host)
}

// elsewhere reports whether a Host header is an address that is not of the loopback interface.
func elsewhere(host string) bool {
	at, err := netip.ParseAddr(hostOf(host))
	return err == nil && !at.Unmap().IsLoopback()
}

// hostOf returns a Host header without its port.
func hostOf(host string) string {
	if n, _, err := net.SplitHostPort(host); err == nil {
		host = n
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// client returns the address of a client, of IPv6 the network.
func client(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	a, bits := at.Addr().Unmap().WithZone(""), 32
	if !a.Is4() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// failures limits the attempts of each client to guess a password. The zero value is ready.
type failures struct {
	mu  sync.Mutex
	all map[netip.Prefix]*limiter
}

// Bounds of failed attempts of a client: some at once, then one in ten seconds.
const (
	maxFailed  = 10
	failedRate = 0.1
	maxFailing = 1024 // clients that are remembered
)

// tooMany reports whether a client has failed too often.
func (f *failures) tooMany(from netip.Prefix, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.all[from]
	return l != nil && !l.has(now)
}

// add records a failed attempt.
func (f *failures) add(from netip.Prefix, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.all[from]
	if l == nil {
		if f.all == nil || len(f.all) >= maxFailing {
			f.all = map[netip.Prefix]*limiter{}
		}
		l = &limiter{rate: failedRate, burst: maxFailed}
		f.all[from] = l
	}
	l.take(now)
}

func loopback(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// knownHost reports whether a Host header is an IP address, localhost or one of Config.Hosts. Other
// names may belong to an attacker who resolves them to this address (DNS rebinding).
func (h *Handler) knownHost(host string) bool {
	name := hostOf(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(h.cfg.Hosts,
		func(k string) bool {
			return strings.EqualFold(k, name)
		})
}

// sameSite reports whether a request comes from the cockpit's own page, from a URL that the user
// entered, or from a client that is not a browser.
func sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
	case "none":
		if r.Method != http.MethodGet {
			return false
		}
	default:
		// Other sites may link to the page, but they may not read or embed it.
		if r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
			r.Header.Get("Sec-Fetch-Dest") != "document" || r.Method != http.MethodGet {
			return false
		}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// limiter is a token bucket: it holds up to burst tokens and gains rate tokens per second.
type limiter struct {
	mu          sync.Mutex
	rate, burst float64
	have        float64
	at          time.Time
}

// take takes a token, and reports whether there was one.
func (l *limiter) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasLocked(now) {
		return false
	}
	l.have--
	return true
}

// has reports whether there is a token.
func (l *limiter) has(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasLocked(now)
}

func (l *limiter) hasLocked(now time.Time) bool {
	if l.at.IsZero() {
		l.have = l.burst
	} else {
		l.have = min(l.burst, l.have+now.Sub(l.at).Seconds()*l.rate)
	}
	l.at = now
	return l.have >= 1
}
