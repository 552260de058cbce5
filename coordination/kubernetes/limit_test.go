package kubernetes_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSwap_ARenewalWaitsForNoOtherCall uses up the requests that the client may make, and renews.
func TestSwap_ARenewalWaitsForNoOtherCall(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l := v1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease",
			APIVersion: "coordination.k8s.io/v1"}}
		if r.Method != http.MethodGet {
			_ = json.NewDecoder(r.Body).Decode(&l)
		}
		l.ResourceVersion = "7"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(l)
	}))
	defer srv.Close()
	h := srv.Client()
	defer h.CloseIdleConnections()
	client, err := clientv1.NewForConfigAndClient(&rest.Config{Host: srv.URL, QPS: 0.001, Burst: 1},
		h)
	check(t, err)
	s, err := kubernetes.New(client, kubernetes.Config{Namespace: "x", Exclusive: true})
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = s.Load(ctx, "x")
	check(t, err)
	if _, _, err := s.Load(ctx, "x"); err == nil {
		t.Fatal("the client has no limit")
	}
	mine := leasestore.Record{Owner: "o", Nonce: "n", Token: 8, Attempt: 1, TTL: time.Minute}
	_, err = s.Swap(ctx, leasestore.SessionRecords+"n", "", mine)
	check(t, err) // the record of a session
	_, _, err = s.Load(ctx, leasestore.SessionRecords+"n")
	check(t, err)
	mine.Attempt++
	_, err = s.Swap(ctx, "y", "", mine)
	check(t, err) // a lease with renewals of its own
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
