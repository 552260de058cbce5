//go:build stores

package kubernetes_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
)

// proxied opens stores with the client that InCluster makes.
func proxied(*testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
	prefix := fresh()
	return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
		cfg := config(t)
		proxy := faulty.New(t, strings.TrimPrefix(cfg.Host, "https://"))
		cfg.Host = "https://" + proxy.Address
		s, err := kubernetes.InClusterWith(exclusive, func() (*rest.Config, error) {
			return cfg, nil
		}, "")
		must(t, err)
		return store{s, prefix}, proxy
	}
}

// TestSilent_ConnectionsCostNoLease lets connections to the API server fall silent, and new ones
// work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) { faulty.Silent(t, proxied) }

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) { faulty.RoundTrips(t, proxied) }

// TestTrips_OfACall delays what is sent on the way, and counts.
func TestTrips_OfACall(t *testing.T) { faulty.Trips(t, proxied, 1) }

// TestCut_WritesThatWereMadeAreNotRefused closes connections at any moment of a write.
func TestCut_WritesThatWereMadeAreNotRefused(t *testing.T) { faulty.Cut(t, proxied) }

func TestFaults_NeverTwoHolders(t *testing.T) { faulty.NeverTwoHolders(t, proxied, nil) }
