//go:build stores

package etcd_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
)

// configured opens a store as a configuration file does.
func configured(t *testing.T, prefix string, endpoints ...string) leasestore.Store {
	t.Helper()
	open, err := etcd.Opener(func(into any) error {
		*into.(*etcd.Settings) = etcd.Settings{Endpoints: endpoints,
			Config: etcd.Config{Prefix: prefix}}
		return nil
	})
	must(t, err)
	s, err := open()
	must(t, err)
	t.Cleanup(func() { _ = s.(interface{ Close() error }).Close() })
	return s
}

// proxied opens stores with one endpoint.
func proxied(t *testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
	p := prefix(t)
	return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
		proxy := faulty.New(t, address(server(t)[0]))
		return configured(t, p, proxy.Address), proxy
	}
}

// TestSilent_ConnectionsCostNoLease lets the connections to the only endpoint fall silent, and new
// ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) { faulty.Silent(t, proxied) }

// TestSilent_OneOfThreeEndpointsCostsNoLease stops one endpoint of three for good.
func TestSilent_OneOfThreeEndpointsCostsNoLease(t *testing.T) {
	faulty.Silent(t, func(t *testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
		p := prefix(t)
		return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
			first := faulty.New(t, address(server(t)[0])).Lasting()
			at := []string{first.Address}
			for range 2 {
				at = append(at, faulty.New(t, address(server(t)[0])).Address)
			}
			return configured(t, p, at...), first
		}
	})
}

func address(endpoint string) string { return strings.TrimPrefix(endpoint, "http://") }

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) { faulty.RoundTrips(t, proxied) }

// TestTrips_OfACall delays what is sent on the way, and counts.
// To take over, it first grants an etcd lease.
func TestTrips_OfACall(t *testing.T) { faulty.Trips(t, proxied, 2) }

// TestCut_WritesThatWereMadeAreNotRefused closes connections at any moment of a write.
func TestCut_WritesThatWereMadeAreNotRefused(t *testing.T) { faulty.Cut(t, proxied) }

// TestFaults_NeverTwoHolders also deletes records, as an operator may.
func TestFaults_NeverTwoHolders(t *testing.T) {
	client := connect(t, server(t))
	p := prefix(t)
	open := func(t *testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
		return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
			return configured(t, p, server(t)...), nil
		}
	}
	faulty.NeverTwoHolders(t, open, func(ctx context.Context) {
		all, err := client.Get(ctx, p, clientv3.WithPrefix())
		if err != nil || len(all.Kvs) == 0 {
			return
		}
		if key := string(all.Kvs[rand.IntN(len(all.Kvs))].Key); !strings.HasSuffix(key, "/holder") {
			_, _ = client.Delete(ctx, key)
		}
	})
}
