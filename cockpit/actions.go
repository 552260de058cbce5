package cockpit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
)

// actionTimeout bounds an action. To forget a member, the replicator asks a majority of the other
// members.
const actionTimeout = 30 * time.Second

// maxAction bounds the body of an action, in bytes.
const maxAction = 8 << 10

// action decodes the body of an action. If it returns false, it has answered the request. A page of
// another site cannot send an action: browsers require the server's consent (CORS) for the header
// and for a JSON body, and this handler never gives it.
func action[T any](h *Handler, w http.ResponseWriter, r *http.Request, into *T) bool {
	switch {
	case !h.cfg.Actions:
		fail(w, http.StatusForbidden, "actions are disabled: see Config.Actions")
		return false
	case r.Header.Get("X-Concord-Action") != "1" || !media(r):
		fail(w, http.StatusUnsupportedMediaType,
			"an action requires the header X-Concord-Action: 1 and a body of type application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAction))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "body: "+view.Cut(err.Error(), 200))
		return false
	}
	return true
}

func (h *Handler) serveRelease(w http.ResponseWriter, r *http.Request) {
	var a api.ReleaseAction
	if !action(h, w, r, &a) {
		return
	}
	s, ok := h.sources().Sessions[a.Session]
	if !ok || h.hidden.has(a.Name) {
		fail(w, http.StatusNotFound, "no such session or lease")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	l := s.Lease(a.Name)
	defer l.Forget()
	err := l.ForceRelease(ctx, coordination.Token(a.Token))
	h.acted("operator action: release lease", err, slog.String("lease", a.Name),
		slog.String("token", strconv.FormatUint(a.Token, 10)))
	var held *coordination.HeldError
	switch {
	case errors.As(err, &held):
		fail(w, http.StatusConflict, "another tenure holds the lease, with token "+
			strconv.FormatUint(uint64(held.Holder.Token), 10)+"; nothing was done")
	case errors.Is(err, coordination.ErrInvalid):
		fail(w, http.StatusBadRequest, view.Cut(err.Error(), 300))
	case err != nil:
		fail(w, http.StatusServiceUnavailable,
			"the outcome is unknown: the lease store did not answer")
	default:
		answer(w, struct {
			Version  int  `json:"version"`
			Released bool `json:"released"`
		}{api.Version, true})
	}
}

// failed answers the request of an action that returned an error, and returns true. invalid is the
// error of a wrong argument.
func failed(w http.ResponseWriter, err, invalid error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, invalid):
		fail(w, http.StatusBadRequest, view.Cut(err.Error(), 300))
	default:
		fail(w, http.StatusServiceUnavailable, view.Cut(err.Error(), 300))
	}
	return true
}

func (h *Handler) serveForget(w http.ResponseWriter, r *http.Request) {
	var a api.ForgetAction
	if !action(h, w, r, &a) {
		return
	}
	dd, ok := h.sources().Replicators[a.Replicator]
	if !ok {
		fail(w, http.StatusNotFound, "no such replicator")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	var how []distributeddata.ForgetOption
	if a.Force {
		how = append(how, distributeddata.Force)
	}
	err := dd.Forget(ctx, a.Member, how...)
	h.acted("operator action: forget member", err, slog.String("member", a.Member),
		slog.Bool("force", a.Force))
	if !failed(w, err, distributeddata.ErrInvalid) {
		answer(w, struct {
			Version   int  `json:"version"`
			Forgotten bool `json:"forgotten"`
		}{api.Version, true})
	}
}

// serveActions answers whether the client may use actions, so that the page shows buttons only to
// clients that may use them.
func (h *Handler) serveActions(w http.ResponseWriter, r *http.Request) {
	answer(w, api.Actions{Version: api.Version, Allowed: h.cfg.Actions &&
		h.authorized(r, Act) == nil})
}

func (h *Handler) serveMove(w http.ResponseWriter, r *http.Request) {
	var a api.MoveAction
	if !action(h, w, r, &a) {
		return
	}
	s := h.sources()
	at, ok := s.regions()[a.Type]
	if !ok {
		fail(w, http.StatusNotFound, "no type of shards named "+strconv.Quote(view.Cut(a.Type, 80)))
		return
	}
	st := at.status
	to, can := at.Shards.(allocator)
	switch {
	case len(st.Shards) == 0:
		fail(w, http.StatusServiceUnavailable,
			"the member is rejoining the cluster, or has closed its region")
		return
	case !can || !st.Movable:
		fail(w, http.StatusConflict, "nothing was done: shards of type "+a.Type+
			" cannot be moved by hand, because its sharding.Config.External is not set, or MaxMoves is -1")
		return
	case a.Shard < 0 || a.Shard >= len(st.Shards):
		fail(w, http.StatusBadRequest, "nothing was done: shard is "+strconv.Itoa(a.Shard)+
			", must be from 0 to "+strconv.Itoa(len(st.Shards)-1))
		return
	}
	if c := cluster(s.System); a.To != "" && !hosts(c, st.Role, a.To) {
		fail(w, http.StatusBadRequest,
			view.Cut("nothing was done: "+strconv.Quote(view.Cut(a.To, 80))+
				" is not in view or cannot host shards of type "+a.Type+
				"; members that can: "+strings.Join(view.Hosts(c, st.Role), ", "), 300))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	err := to.Allocate(ctx, map[int]string{a.Shard: a.To})
	h.acted("operator action: move shard", err, slog.String("type", a.Type),
		slog.Int("shard", a.Shard), slog.String("to", a.To))
	if !failed(w, err, sharding.ErrInvalid) {
		answer(w, struct {
			Version   int  `json:"version"`
			Requested bool `json:"requested"`
		}{api.Version, a.To != ""})
	}
}

// hosts reports whether a member, given by its address or id, is in view and has a role.
func hosts(c api.Cluster, role, member string) bool {
	return slices.ContainsFunc(c.Members, func(m api.Member) bool {
		return (m.Address == member || m.ID == member) && view.HasRole(m, role)
	})
}

// acted records an action as an event.
func (h *Handler) acted(what string, err error, attrs ...slog.Attr) {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, what, 0)
	r.AddAttrs(attrs...)
	if err != nil {
		r.AddAttrs(slog.Any("error", err))
	}
	h.ring.add((&tap{h: h}).event(r))
}
