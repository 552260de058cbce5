package azureblob_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSwap_ARepeatedRequestProvesNothing: the service executes a write and answers with an error
// that makes the client repeat it. The answer to the repetition says nothing about the first.
func TestSwap_ARepeatedRequestProvesNothing(t *testing.T) {
	type answer struct {
		status int
		code   string
	}
	busy := answer{http.StatusServiceUnavailable, "ServerBusy"}
	forbidden := answer{http.StatusForbidden, "AuthorizationFailure"}
	other := answer{http.StatusPreconditionFailed, "ConditionNotMet"}
	for name, c := range map[string]struct {
		answers []answer
		want    error // nil: unknown
	}{
		"refused":             {[]answer{forbidden}, leasestore.ErrRefused},
		"conflict":            {[]answer{other}, leasestore.ErrConflict},
		"repeated, refused":   {[]answer{busy, forbidden}, nil},
		"repeated, conflict":  {[]answer{busy, other}, nil},
		"repeated for a time": {[]answer{busy, busy, busy, busy, busy}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				a := c.answers[min(int(asked.Add(1)), len(c.answers))-1]
				w.Header().Set("x-ms-error-code", a.code)
				w.WriteHeader(a.status)
			}))
			defer srv.Close()
			h := srv.Client()
			defer h.CloseIdleConnections()
			client, err := container.NewClientWithNoCredential(srv.URL+"/leases",
				&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: h,
					Retry: policy.RetryOptions{RetryDelay: time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			s, err := azureblob.New(client, azureblob.Config{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Swap(t.Context(), "x", "old", leasestore.Record{Token: 1})
			certain := errors.Is(err, leasestore.ErrRefused) ||
				errors.Is(err, leasestore.ErrConflict)
			if err == nil || certain != (c.want != nil) ||
				c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("after %d requests: %v", asked.Load(), err)
			}
		})
	}
}
