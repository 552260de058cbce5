//go:build stores

package zookeeper_test

import (
	"testing"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
)

// proxied opens stores with one server.
func proxied(*testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
	path := fresh()
	return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
		proxy := faulty.New(t, servers(t)[0])
		return open(t, zookeeper.Config{Path: path, Servers: []string{proxy.Address}}), proxy
	}
}

// TestSilent_ConnectionsCostNoLease lets the connection to the server fall silent, and new ones
// work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) { faulty.Silent(t, proxied) }

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) { faulty.RoundTrips(t, proxied) }

// TestTrips_OfACall delays what is sent on the way, and counts.
func TestTrips_OfACall(t *testing.T) { faulty.Trips(t, proxied, 1) }

// TestCut_WritesThatWereMadeAreNotRefused closes connections at any moment of a write.
func TestCut_WritesThatWereMadeAreNotRefused(t *testing.T) { faulty.Cut(t, proxied) }

func TestFaults_NeverTwoHolders(t *testing.T) { faulty.NeverTwoHolders(t, proxied, nil) }
