package cockpit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/concord-go/concord/cockpit/api"
	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
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
		fail(w, http.StatusUnsupportedMediaType, "an action requires the header X-Concord-Action: 1 and a body of type application/json")
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
	h.acted("operator action: release lease", err, slog.String("lease", a.Name), slog.String("token", strconv.FormatUint(a.Token, 10)))
	var held *coordination.HeldError
	switch {
	case errors.As(err, &held):
		fail(w, http.StatusConflict, "another tenure holds the lease, with token "+strconv.FormatUint(uint64(held.Holder.Token), 10)+"; nothing was done")
	case errors.Is(err, coordination.ErrInvalid):
		fail(w, http.StatusBadRequest, view.Cut(err.Error(), 300))
	case err != nil:
		fail(w, http.StatusServiceUnavailable, "the outcome is unknown: the lease store did not answer")
	default:
		answer(w, struct {
			Version  int  `json:"version"`
			Released bool `json:"released"`
		}{api.Version, true})
	}
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
	err := dd.Forget(ctx, a.Member)
	h.acted("operator action: forget member", err, slog.String("member", a.Member))
	switch {
	case errors.Is(err, distributeddata.ErrInvalid):
		fail(w, http.StatusBadRequest, view.Cut(err.Error(), 300))
	case err != nil:
		fail(w, http.StatusServiceUnavailable, view.Cut(err.Error(), 300))
	default:
		answer(w, struct {
			Version   int  `json:"version"`
			Forgotten bool `json:"forgotten"`
		}{api.Version, true})
	}
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
