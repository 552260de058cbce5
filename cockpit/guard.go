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
		if err := h.cfg.Authorize(r, p); err != nil {
			return &refusal{http.StatusUnauthorized, "not authorized"}
		}
		return nil
	case p != Look:
		return &refusal{http.StatusForbidden,
			"actions are disabled: see Config.Actions and Config.Authorize"}
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	case forwarded(r.Header):
		return &refusal{http.StatusForbidden,
			"requests forwarded by a proxy require Config.Authorize"}
	case !loopback(r.RemoteAddr):
		return &refusal{http.StatusForbidden,
			"remote clients require Config.Authorize or a verified TLS client certificate"}
	}
	return nil
}

func forwarded(h http.Header) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Real-Ip", "Via"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

func loopback(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// knownHost reports whether a Host header is an IP address, localhost or one of Config.Hosts. Other
// names may belong to an attacker who resolves them to this address (DNS rebinding).
func (h *Handler) knownHost(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
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

func (l *limiter) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() {
		l.have = l.burst
	} else {
		l.have = min(l.burst, l.have+now.Sub(l.at).Seconds()*l.rate)
	}
	l.at = now
	if l.have < 1 {
		return false
	}
	l.have--
	return true
}
