package noderun_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/node"
)

// TestHealth_OverHTTP serves Health as a program would.
func TestHealth_OverHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	cfg.Health = &node.Health{}
	server := httptest.NewServer(cfg.Health)
	defer server.Close()
	get := func(path string) (int, string) {
		res, err := server.Client().Get(server.URL + path)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	code, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "node: not running\n", body)
	up := make(chan string, 1)
	done := background(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error { up <- n.System.Address(); return nil })
		return nil
	})
	address := <-up
	code, body = get("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\nmembers: 1 of 1: "+address+"\n", body)
	code, _ = get("/livez")
	require.Equal(t, http.StatusOK, code)
	code, _ = get("/")
	require.Equal(t, http.StatusNotFound, code)
	cancel()
	require.NoError(t, <-done)
	code, body = get("/livez")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "node: stopped\n", body)
	server.Client().CloseIdleConnections()
}
