package cockpit

import (
	"bytes"
	"embed"
	"encoding/json"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// static holds the files of the page. They need no build step and load nothing from other servers.
//
//go:embed static
var static embed.FS

// route describes how to serve one path.
type route struct {
	method string
	need   Permission
	serve  http.HandlerFunc
}

// policy is a Content-Security-Policy that restricts the page to resources of this handler.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler. To mount the handler below a path, use http.StripPrefix.
// Browsers must request that path with a trailing slash.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	to, known := h.routes[r.URL.Path]
	if no := h.admit(r, to.need); no != nil {
		switch no.status {
		case http.StatusUnauthorized:
			head.Set("WWW-Authenticate", `Basic realm="cockpit", charset="UTF-8"`)
		case http.StatusTooManyRequests:
			head.Set("Retry-After", "1")
		}
		fail(w, no.status, no.why)
		return
	}
	switch {
	case !known:
		fail(w, http.StatusNotFound, "no such endpoint")
	case r.Method != to.method && !(r.Method == http.MethodHead && to.method == http.MethodGet):
		head.Set("Allow", to.method)
		fail(w, http.StatusMethodNotAllowed, "the method must be "+to.method)
	default:
		to.serve(w, r)
	}
}

// table returns all routes.
func (h *Handler) table() map[string]route {
	t := map[string]route{}
	get := func(path string, f http.HandlerFunc) { t["/"+path] = route{http.MethodGet, Look, f} }
	of := func(path string, f func(*api.Overview) any) {
		get("api/v1/"+path, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, f(h.overview()))
		})
	}
	for name, f := range sections {
		of(name, f)
	}
	get("api/v1/overview", func(w http.ResponseWriter, r *http.Request) {
		h.peers.refresh(r.Context())
		answer(w, h.overview())
	})
	get("api/v1/peers", func(w http.ResponseWriter, r *http.Request) {
		h.peers.refresh(r.Context())
		answer(w, h.peers.last())
	})
	get("api/v1/events", h.serveEvents)
	get("api/v1/keys", h.serveKeys)
	get("api/v1/value", h.serveValue)
	get("api/v1/leases", h.serveLeases)
	get("api/v1/lease", h.serveLease)
	get("api/v1/shards", h.serveShards)
	get("api/v1/stream", h.hub.serve)
	if h.cfg.Metrics != nil {
		get("metrics", h.cfg.Metrics.ServeHTTP)
	}
	t["/api/v1/actions/release"] = route{http.MethodPost, Act, h.serveRelease}
	t["/api/v1/actions/forget"] = route{http.MethodPost, Act, h.serveForget}
	t["/api/v1/actions/move"] = route{http.MethodPost, Act, h.serveMove}
	get("api/v1/actions", h.serveActions)
	files, _ := static.ReadDir("static") // cannot fail: the directory is embedded
	for _, f := range files {
		get(f.Name(), file(f.Name()))
	}
	get("", file("index.html"))
	delete(t, "/index.html")
	return t
}

// sections are the parts of an overview. Each has an endpoint and is an event of the stream.
var sections = map[string]func(*api.Overview) any{
	"node":        func(o *api.Overview) any { return o.Node },
	"health":      func(o *api.Overview) any { return o.Health },
	"cluster":     func(o *api.Overview) any { return o.Cluster },
	"peers":       func(o *api.Overview) any { return o.Peers },
	"replicators": func(o *api.Overview) any { return o.Replicators },
	"sessions":    func(o *api.Overview) any { return o.Sessions },
	"singletons":  func(o *api.Overview) any { return o.Singletons },
	"types":       func(o *api.Overview) any { return o.Shards },
	"times":       func(o *api.Overview) any { return o.Times },
	"changes":     func(o *api.Overview) any { return o.Changes },
	"problems":    func(o *api.Overview) any { return o.Problems },
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func file(name string) http.HandlerFunc {
	raw, err := static.ReadFile("static/" + name)
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			fail(w, http.StatusNotFound, "no such file")
			return
		}
		w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	}
}

func answer(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(raw, '\n')) // ignore clients that have disconnected
}

func fail(w http.ResponseWriter, status int, why string) {
	raw, _ := json.Marshal(api.Error{Version: api.Version, Error: why}) // cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
}

// maxQuery bounds a parameter of a request, in bytes. Names of entries have at most 512 bytes, and
// their cursors have a third more.
const maxQuery = 2048

// param returns a parameter. If it returns false, it has answered the request.
func param(w http.ResponseWriter, r *http.Request, name string) (string, bool) {
	v := r.URL.Query().Get(name)
	if len(v) > maxQuery {
		fail(w, http.StatusBadRequest, name+" has "+strconv.Itoa(len(v))+
			" bytes, must have at most "+strconv.Itoa(maxQuery))
		return "", false
	}
	return v, true
}

// number returns a numeric parameter between least and most, or unset if it is missing. If it
// returns false, it has answered the request.
func number(w http.ResponseWriter, r *http.Request, name string, unset, least, most uint64) (uint64,
	bool) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return unset, true
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n < least || n > most {
		fail(w, http.StatusBadRequest, name+" must be a number from "+strconv.FormatUint(least, 10)+
			" to "+strconv.FormatUint(most, 10))
		return 0, false
	}
	return n, true
}

// media reports whether a request has a JSON body. Forms of other sites cannot send one.
func media(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(kind) == "application/json"
}
