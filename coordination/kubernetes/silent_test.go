//go:build stores

package kubernetes_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
)

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

// proxied opens a store behind a proxy, with the client that InCluster makes.
func proxied(t *testing.T, prefix string) (leasestore.Store, *faulty.Proxy) {
	t.Helper()
	cfg := config(t)
	proxy := faulty.New(t, strings.TrimPrefix(cfg.Host, "https://"))
	cfg.Host = "https://" + proxy.Address
	s, err := kubernetes.InClusterWith(exclusive, func() (*rest.Config, error) {
		return cfg, nil
	}, "")
	must(t, err)
	return store{s, prefix}, proxy
}

// TestSilent_ConnectionsCostNoLease lets connections to the API server fall silent, and new ones
// work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) {
	t.Parallel()
	prefix := fresh()
	member := func() faulty.Member {
		s, proxy := proxied(t, prefix)
		return faulty.Member{Store: s, Silence: proxy.Silence}
	}
	faulty.Silent(t, *silences, member(), member())
}

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) {
	faulty.RoundTrips(t, 0.1, func(t *testing.T, delay time.Duration) (holder,
		waiter leasestore.Store) {
		prefix := fresh()
		store := func() leasestore.Store {
			s, proxy := proxied(t, prefix)
			proxy.Delay(delay)
			return s
		}
		return store(), store()
	})
}
