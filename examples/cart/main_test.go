package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutput_IsAsPromised(t *testing.T) { three.Check(t, "cart", run) }

func TestAnswer_Errors(t *testing.T) {
	for err, status := range map[error]int{
		distributeddata.ErrInvalid: http.StatusBadRequest,
		distributeddata.ErrLimit:   http.StatusBadRequest,
		distributeddata.ErrUnknown: http.StatusServiceUnavailable,
		context.Canceled:           http.StatusServiceUnavailable,
	} {
		w := httptest.NewRecorder()
		answer(w, http.StatusOK, crdt.ORSet[string]{}, "majority", err)
		require.Equal(t, status, w.Code, "%v", err)
		require.Contains(t, w.Body.String(), err.Error())
	}
}

// TestAPI_RejectsABadName sends a customer whose name is too long for a key.
func TestAPI_RejectsABadName(t *testing.T) {
	var codes []int
	three.CheckRun(t, func(ctx context.Context, _ io.Writer, c *three.Cluster) error {
		for _, method := range []string{"GET /carts/%", "PUT /carts/%/items/milk",
			"DELETE /carts/%/items/milk"} {
			verb, path, _ := strings.Cut(method, " ")
			path = strings.Replace(path, "%", strings.Repeat("x", 5000), 1)
			w := httptest.NewRecorder()
			API(c.DD[0]).ServeHTTP(w, httptest.NewRequestWithContext(ctx, verb, path, http.NoBody))
			codes = append(codes, w.Code)
		}
		return nil
	})
	require.Equal(t, []int{400, 400, 400}, codes)
}
