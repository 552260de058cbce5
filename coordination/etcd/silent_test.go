//go:build stores

package etcd_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
)

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

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

// TestSilent_ConnectionsCostNoLease lets the connections to the only endpoint fall silent, and new
// ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) {
	t.Parallel()
	p := prefix(t)
	member := func() faulty.Member {
		proxy := faulty.New(t, address(server(t)[0]))
		return faulty.Member{Store: configured(t, p, proxy.Address), Silence: proxy.Silence}
	}
	faulty.Silent(t, *silences, member(), member())
}

// TestSilent_OneOfThreeEndpointsCostsNoLease stops one endpoint of three for good.
func TestSilent_OneOfThreeEndpointsCostsNoLease(t *testing.T) {
	t.Parallel()
	p := prefix(t)
	member := func() faulty.Member {
		var at []string
		var proxies []*faulty.Proxy
		for range 3 {
			proxy := faulty.New(t, address(server(t)[0]))
			at, proxies = append(at, proxy.Address), append(proxies, proxy)
		}
		return faulty.Member{Store: configured(t, p, at...), Silence: proxies[0].Stop}
	}
	faulty.Silent(t, 1, member(), member())
}

func address(endpoint string) string { return strings.TrimPrefix(endpoint, "http://") }

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) {
	faulty.RoundTrips(t, 0.1, func(t *testing.T, delay time.Duration) (holder,
		waiter leasestore.Store) {
		p := prefix(t)
		store := func() leasestore.Store {
			proxy := faulty.New(t, address(server(t)[0]))
			proxy.Delay(delay)
			return configured(t, p, proxy.Address)
		}
		return store(), store()
	})
}
