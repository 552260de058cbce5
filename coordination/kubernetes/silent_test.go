//go:build stores

package kubernetes_test

import (
	"flag"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/kubernetes"
)

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

// TestSilent_ConnectionsCostNoLease lets connections to the API server fall silent, and new ones
// work, with the client that InCluster makes.
func TestSilent_ConnectionsCostNoLease(t *testing.T) {
	t.Parallel()
	prefix := fresh()
	member := func() faulty.Member {
		cfg := config(t)
		proxy := faulty.New(t, strings.TrimPrefix(cfg.Host, "https://"))
		cfg.Host = "https://" + proxy.Address
		s, err := kubernetes.InClusterWith(exclusive, func() (*rest.Config, error) {
			return cfg, nil
		}, "")
		must(t, err)
		return faulty.Member{Store: store{s, prefix}, Silence: proxy.Silence}
	}
	faulty.Silent(t, *silences, member(), member())
}
