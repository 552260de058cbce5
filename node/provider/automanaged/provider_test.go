package automanaged_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/testkit/clustertest"
)

const refresh = 200 * time.Millisecond

func TestMain(m *testing.M) {
	clustertest.Main(provide)
	goleak.VerifyTestMain(m)
}

func provide(m clustertest.Member) (cluster.ClusterProvider, error) {
	var hosts []string
	for _, port := range m.Spare {
		hosts = append(hosts, fmt.Sprintf("%s:%d", m.Host, port))
	}
	if os.Getenv(mixed) != "" && m.Index%2 == 1 {
		return upstream.NewWithConfig(refresh, m.Spare[m.Index], hosts...), nil
	}
	return automanaged.New(automanaged.Config{Port: m.Spare[m.Index], Hosts: hosts, Refresh: refresh})()
}

// mixed is the environment variable that has every other member use Proto.Actor's provider.
const mixed = "CONCORD_AUTOMANAGED_MIXED"

func TestProvider(t *testing.T) {
	clustertest.Run(t, clustertest.Config{Listens: true})
}

// Members with our provider and with Proto.Actor's are one cluster.
func TestProvider_SpeaksWithProtoActors(t *testing.T) {
	t.Setenv(mixed, "yes")
	clustertest.Run(t, clustertest.Config{Except: map[string]string{
		"P16": "Proto.Actor's provider drops who was paused with it",
		"P15": "Proto.Actor's provider races with itself when it stops",
		"P11": "Proto.Actor's provider leaves idle connections behind",
		"P13": "Proto.Actor's provider logs an error when it stops",
	}})
}
