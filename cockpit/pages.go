package cockpit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
)

// Bounds of pages.
const (
	defaultPage = 50
	maxPage     = 500
	maxName     = 512
	maxSteps    = 4096 // entries visited for one page
)

// cursor encodes the name at which a page begins as text for a URL. uncursor decodes it; if it
// returns false, it has answered the request.
func cursor(from string) string { return base64.RawURLEncoding.EncodeToString([]byte(from)) }

func uncursor(w http.ResponseWriter, r *http.Request) (from string, ok bool) {
	text, ok := param(w, r, "after")
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) > maxName+1 {
		fail(w, http.StatusBadRequest, "after must be a cursor of a page")
		return "", false
	}
	return string(raw), true
}

// pick returns the component with the name given by a parameter. The parameter may be omitted if
// there is only one component. If pick returns false, it has answered the request.
func pick[T any](w http.ResponseWriter, r *http.Request, param, what string,
	of map[string]T) (name string, c T, ok bool) {
	name = r.URL.Query().Get(param)
	if name == "" && len(of) == 1 {
		for name, c = range of {
			return name, c, true
		}
	}
	c, ok = of[name]
	switch {
	case ok:
	case len(of) == 0:
		fail(w, http.StatusNotFound, "this member has no "+what)
	case name == "":
		fail(w, http.StatusNotFound, view.Cut(fmt.Sprintf("this member has more than one %s: %q",
			what, slices.Sorted(maps.Keys(of))), 300))
	default:
		fail(w, http.StatusNotFound, "no "+what+" named "+strconv.Quote(view.Cut(name, 80)))
	}
	return name, c, ok
}

// window returns the bounds of a page: the name at which it begins, and how many items it has. If
// it returns false, it has answered the request.
func window(w http.ResponseWriter, r *http.Request) (from string, limit int, ok bool) {
	if from, ok = uncursor(w, r); !ok {
		return "", 0, false
	}
	n, ok := number(w, r, "limit", defaultPage, 1, maxPage)
	return from, int(n), ok
}

func (h *Handler) serveKeys(w http.ResponseWriter, r *http.Request) {
	name, dd, ok := pick(w, r, "replicator", "replicator", h.sources().Replicators)
	if !ok {
		return
	}
	prefix, ok := param(w, r, "prefix")
	if !ok {
		return
	}
	from, limit, ok := window(w, r)
	if !ok {
		return
	}
	if len(prefix) > maxName || !utf8.ValidString(prefix) {
		fail(w, http.StatusBadRequest, "prefix must be UTF-8 of at most 512 bytes")
		return
	}
	answer(w, h.keys(name, dd.Snapshot(), prefix, from, limit))
}

// keys returns one page of entries. It skips hidden names.
func (h *Handler) keys(name string, s distributeddata.Snapshot, prefix, from string,
	limit int) api.Page[api.Key] {
	page := api.Page[api.Key]{Version: api.Version, Items: []api.Key{}}
	steps := 0
	for again := true; again; {
		again = false
		for e := range s.Entries(prefix, from) {
			if len(page.Items) == limit || steps == maxSteps {
				page.Next = cursor(from)
				return page
			}
			steps++
			if h.hidden.has(e.Key) {
				next, end := h.hidden.next(e.Key)
				if end {
					return page
				}
				from, again = next, true
				break
			}
			from = e.Key + "\x00"
			if !e.Gone {
				page.Items = append(page.Items, h.key(name, e))
			}
		}
	}
	return page
}

// holds reports whether an entry exists.
func holds(s distributeddata.Snapshot, key string) bool {
	for e := range s.Entries(key, key) {
		return e.Key == key && !e.Gone
	}
	return false
}

func (h *Handler) key(replicator string, e distributeddata.EntryInfo) api.Key {
	_, shown := h.shows(e.Key)
	k := api.Key{Key: e.Key, Type: e.Type, Durable: e.Durable, Atoms: e.Atoms, Bytes: e.Bytes,
		Value: shown && e.Bytes <= maxShown}
	h.picture.Lock()
	defer h.picture.Unlock()
	k.Changed = h.picture.recent.at(replicator, e.Key)
	return k
}

// readTimeout bounds the time that a request waits for a component.
const readTimeout = 5 * time.Second

func (h *Handler) serveValue(w http.ResponseWriter, r *http.Request) {
	_, dd, ok := pick(w, r, "replicator", "replicator", h.sources().Replicators)
	if !ok {
		return
	}
	key, ok := param(w, r, "key")
	if !ok {
		return
	}
	v, shown := h.shows(key)
	missing := "no entry " + strconv.Quote(view.Cut(key, 80)) + " at this member"
	if h.hidden.has(key) || !holds(dd.Snapshot(), key) {
		fail(w, http.StatusNotFound, missing)
		return
	}
	if !shown {
		fail(w, http.StatusForbidden, "the value of this entry is not shown: see Config.Values")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	text, err := h.value(ctx, dd, key, v)
	switch {
	case errors.Is(err, distributeddata.ErrNotFound):
		fail(w, http.StatusNotFound, missing)
	case errors.Is(err, errTooLarge):
		fail(w, http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		fail(w, http.StatusServiceUnavailable, view.Cut(err.Error(), 300))
	default:
		text = strings.ToValidUTF8(text, "�")
		answer(w, api.Value{Version: api.Version, Key: key, Text: view.Cut(text, maxShownText),
			Cut: len(text) > maxShownText})
	}
}

func (h *Handler) serveLeases(w http.ResponseWriter, r *http.Request) {
	sessions := h.sources().Sessions
	if name := r.URL.Query().Get("session"); name != "" || len(sessions) == 1 {
		one, s, ok := pick(w, r, "session", "session", sessions)
		if !ok {
			return
		}
		sessions = map[string]*coordination.Session{one: s}
	}
	from, limit, ok := window(w, r)
	if !ok {
		return
	}
	page := api.Page[api.Lease]{Version: api.Version, Items: []api.Lease{}}
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		for _, l := range h.leases(name, sessions[name], now) {
			place := name + "\x00" + l.Name
			switch {
			case place < from:
			case len(page.Items) == limit:
				page.Next = cursor(place)
				answer(w, page)
				return
			default:
				page.Items = append(page.Items, l)
			}
		}
	}
	answer(w, page)
}

// serveLease returns the holder of a lease, read from the lease store.
func (h *Handler) serveLease(w http.ResponseWriter, r *http.Request) {
	_, s, ok := pick(w, r, "session", "session", h.sources().Sessions)
	if !ok {
		return
	}
	name, ok := param(w, r, "name")
	if !ok {
		return
	}
	if h.hidden.has(name) {
		fail(w, http.StatusNotFound, "no such lease")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	l := s.Lease(name)
	// unless it is in use: the session must not remember every name that a client asks for
	defer l.Forget()
	holder, err := l.Holder(ctx)
	switch {
	case errors.Is(err, coordination.ErrInvalid):
		fail(w, http.StatusBadRequest, view.Cut(err.Error(), 300))
	case err != nil:
		fail(w, http.StatusServiceUnavailable, "the lease store did not answer")
	default:
		out := api.Holder{Name: name, Owner: holder.Owner, Held: holder.Session != "",
			Token: uint64(holder.Token), RemainingMS: holder.Remaining.Milliseconds(),
			Forever: holder.Forever}
		if h.cfg.HideOwners {
			out.Owner = ""
		}
		answer(w, out)
	}
}

// region is the region of a type, with its present status.
type region struct {
	Shards
	status sharding.Status
}

// regions returns the regions by type.
func (s Sources) regions() map[string]region {
	out := map[string]region{}
	for _, r := range s.Shards {
		st := r.Status()
		out[st.Type] = region{r, st}
	}
	return out
}

func (h *Handler) serveShards(w http.ResponseWriter, r *http.Request) {
	s := h.sources()
	_, at, ok := pick(w, r, "type", "type of shards", s.regions())
	if !ok {
		return
	}
	st := at.status
	after, ok := number(w, r, "after", 0, 0, 1<<32)
	if !ok {
		return
	}
	limit, ok := number(w, r, "limit", defaultPage, 1, maxPage)
	if !ok {
		return
	}
	page := api.Page[api.Shard]{Version: api.Version, Items: []api.Shard{}}
	address := h.book.of(s.System, cluster(s.System))
	begin := min(int(after), len(st.Shards))
	end := min(begin+int(limit), len(st.Shards))
	for _, sh := range st.Shards[begin:end] {
		item := view.Shard(sh, address)
		if name := st.LeasePrefix + strconv.Itoa(sh.Shard); !h.hidden.has(name) {
			item.Lease = name
		}
		page.Items = append(page.Items, item)
	}
	if end < len(st.Shards) {
		page.Next = strconv.Itoa(end)
	}
	answer(w, page)
}

func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	after, ok := number(w, r, "after", 0, 0, 1<<62)
	if !ok {
		return
	}
	limit, ok := number(w, r, "limit", maxEvents, 1, maxEvents)
	if !ok {
		return
	}
	h.overview() // records changes as events
	answer(w, api.Page[api.Event]{Version: api.Version, Items: h.ring.after(after, int(limit))})
}
