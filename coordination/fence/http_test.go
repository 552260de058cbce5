package fence_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/testkit"
)

func ledger(*http.Request) string { return "ledger" }

// answer sends one request with these headers through the handler.
func answer(h http.Handler, tokens ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	for _, token := range tokens {
		req.Header.Add(fence.Header, token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestHandler_AnswersEachMistakeInItsOwnWay(t *testing.T) {
	g := fence.Guard{Limit: 1}
	h := g.Handler(ledger, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	require.Equal(t, http.StatusNoContent, answer(h, "7").Code)
	for _, bad := range [][]string{nil, {""}, {"7", "7"}, {"7", "8"}, {"0"}, {"07"}, {"+7"}, {"-1"},
		{" 7"}, {"7.0"}, {"0x7"}, {"9223372036854775808"}, {strings.Repeat("9", 5000)}} {
		w := answer(h, bad...)
		require.Equal(t, http.StatusBadRequest, w.Code, "%q", bad)
		require.Contains(t, w.Body.String(), "fence: invalid")
		require.Less(t, w.Body.Len(), 200)
	}
	stale := answer(h, "6")
	require.Equal(t, http.StatusPreconditionFailed, stale.Code)
	require.Equal(t, "fence: stale token 6 for \"ledger\", 7 has been seen\n", stale.Body.String())
	require.Equal(t, http.StatusNoContent, answer(h, "9223372036854775807").Code)

	other := g.Handler(func(*http.Request) string { return "other" }, http.NotFoundHandler())
	require.Equal(t, http.StatusServiceUnavailable, answer(other, "1").Code)
}

func TestHandler_OvertakenRequestIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fence.Guard
		var cause error
		h := g.Handler(ledger, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if req.Header.Get(fence.Header) == "1" {
				<-req.Context().Done()
				cause = context.Cause(req.Context())
			}
		}))
		done := make(chan struct{})
		go func() { defer close(done); answer(h, "1") }()
		synctest.Wait()
		require.Equal(t, http.StatusOK, answer(h, "2").Code)
		<-done
		require.ErrorIs(t, cause, fence.ErrStale)
	})
}

// wire stands for the network: it passes requests to the handler, and counts them.
type wire struct {
	handler http.Handler
	sent    int
}

func (n *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	n.sent++
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, req)
	return w.Result(), nil
}

func TestTransport_CarriesTheTokenOfTheTenure(t *testing.T) {
	var g fence.Guard
	network := &wire{handler: g.Handler(ledger,
		http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, "written under "+req.Header.Get(fence.Header))
		}))}
	client := &http.Client{Transport: fence.Transport{Base: network}}
	post := func(ctx context.Context) (int, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ledger/",
			strings.NewReader("entry"))
		require.NoError(t, err)
		req.Header.Set(fence.Header, "99") // replaced
		resp, err := client.Do(req)
		require.Equal(t, "99", req.Header.Get(fence.Header), "the caller's request is not written")
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body), nil
	}
	old, _ := testkit.Tenure(t, 3)
	next, end := testkit.Tenure(t, 4)

	code, body, err := post(next.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "written under 4", body)

	code, body, err = post(old.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusPreconditionFailed, code)
	require.Contains(t, body, "4 has been seen")

	sent := network.sent
	_, _, err = post(t.Context())
	require.ErrorIs(t, err, fence.ErrInvalid)
	require.ErrorContains(t, err, "the request's context is not that of a grant or of Lease.Do")
	end()
	require.Error(t, next.Check())
	_, _, err = post(context.WithoutCancel(next.Context()))
	require.ErrorIs(t, err, coordination.ErrLost)
	require.Equal(t, sent, network.sent, "nothing was sent")
}

// closed records that it was closed.
type closed struct {
	io.Reader
	yes bool
}

func (c *closed) Close() error { c.yes = true; return nil }

func TestTransport_ClosesTheBodyItDoesNotSend(t *testing.T) {
	body := &closed{Reader: strings.NewReader("entry")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://ledger/", body)
	require.NoError(t, err)
	resp, err := fence.Transport{}.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.ErrorIs(t, err, fence.ErrInvalid)
	require.True(t, body.yes)
}
