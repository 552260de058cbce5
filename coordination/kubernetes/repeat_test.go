package kubernetes_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSwap_ARepeatedRequestProvesNothing: the API server executes a write and answers with an error
// that makes client-go repeat it. The answer to the repetition says nothing about the first.
func TestSwap_ARepeatedRequestProvesNothing(t *testing.T) {
	type answer struct {
		status int
		reason string
	}
	busy := answer{http.StatusInternalServerError, "InternalError"}
	forbidden, other := answer{http.StatusForbidden, "Forbidden"}, answer{http.StatusConflict,
		"Conflict"}
	exists := answer{http.StatusConflict, "AlreadyExists"}
	for name, c := range map[string]struct {
		old     leasestore.Version
		answers []answer
		want    error // nil: unknown
	}{
		"refused":            {"5.0.1", []answer{forbidden}, leasestore.ErrRefused},
		"conflict":           {"5.0.1", []answer{other}, leasestore.ErrConflict},
		"exists":             {"", []answer{exists}, leasestore.ErrConflict},
		"repeated, refused":  {"5.0.1", []answer{busy, forbidden}, nil},
		"repeated, conflict": {"5.0.1", []answer{busy, other}, nil},
		"repeated, exists":   {"", []answer{busy, exists}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				a := c.answers[min(int(asked.Add(1)), len(c.answers))-1]
				w.Header().Set("Content-Type", "application/json")
				if a == busy {
					w.Header().Set("Retry-After", "0")
				}
				w.WriteHeader(a.status)
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`,
					a.reason, a.status)
			}))
			defer srv.Close()
			h := srv.Client()
			defer h.CloseIdleConnections()
			client, err := clientv1.NewForConfigAndClient(&rest.Config{Host: srv.URL, QPS: -1}, h)
			if err != nil {
				t.Fatal(err)
			}
			s, err := kubernetes.New(client, kubernetes.Config{Namespace: "x"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Swap(t.Context(), "x", c.old, leasestore.Record{Token: 1})
			certain := errors.Is(err, leasestore.ErrRefused) ||
				errors.Is(err, leasestore.ErrConflict)
			if err == nil || certain != (c.want != nil) ||
				c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("after %d requests: %v", asked.Load(), err)
			}
		})
	}
}
