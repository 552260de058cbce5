//go:build stores

package zookeeper_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/zk"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/node/provider/zookeeper"
	"github.com/concord-go/concord/testkit/clustertest"
)

const (
	endpoint = "CONCORD_PROVIDER_ZOOKEEPER" // where members find ZooKeeper
	mixed    = "CONCORD_PROVIDER_MIXED"     // every other member uses Proto.Actor's provider
)

func TestMain(m *testing.M) {
	clustertest.Main(provide)
	goleak.VerifyTestMain(m)
}

func provide(m clustertest.Member) (cluster.ClusterProvider, error) {
	servers := []string{os.Getenv(endpoint)}
	if os.Getenv(mixed) != "" && m.Index%2 == 1 {
		return upstream.New(servers, upstream.WithSessionTimeout(5*time.Second))
	}
	return zookeeper.New(zookeeper.Config{Servers: servers})()
}

// server returns the address of a real ZooKeeper. Without one these tests fail: make stores starts
// it.
func server(t testing.TB) string {
	t.Helper()
	all := os.Getenv("CONCORD_ZOOKEEPER")
	if all == "" {
		t.Fatal("CONCORD_ZOOKEEPER names no server: run make stores")
	}
	one, _, _ := strings.Cut(all, ",")
	return one
}

func TestProvider(t *testing.T) {
	gate := clustertest.NewGate(t, server(t))
	t.Setenv(endpoint, gate.Address())
	clustertest.Run(t, clustertest.Config{Server: gate.Server()})
}

// Members with our provider and with Proto.Actor's form one cluster. They start one by one: when
// two members create the node of a new cluster, the one with Proto.Actor's provider fails.
func TestProvider_SpeaksWithProtoActors(t *testing.T) {
	t.Setenv(endpoint, server(t))
	t.Setenv(mixed, "yes")
	const id = "Proto.Actor's provider makes its id of the address, and ids that left are banned"
	clustertest.Run(t, clustertest.Config{OneByOne: true, Except: map[string]string{
		"P16": "Proto.Actor's provider drops who was paused with it",
		"P15": "Proto.Actor's provider races with itself when it stops",
		"P7":  id, "P8": id, "P11": id,
		"P13": "Proto.Actor's provider logs an error when its connection is closed",
	}})
}
