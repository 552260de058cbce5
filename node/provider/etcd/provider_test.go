//go:build stores

package etcd_test

import (
	"os"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/concord-go/concord/node/provider/etcd"
	"github.com/concord-go/concord/testkit/clustertest"
)

const (
	endpoint = "CONCORD_PROVIDER_ETCD"  // where members find etcd
	mixed    = "CONCORD_PROVIDER_MIXED" // every other member uses Proto.Actor's provider
)

func TestMain(m *testing.M) {
	clustertest.Main(provide)
	goleak.VerifyTestMain(m)
}

func provide(m clustertest.Member) (cluster.ClusterProvider, error) {
	client := clientv3.Config{Endpoints: []string{os.Getenv(endpoint)}}
	if os.Getenv(mixed) != "" && m.Index%2 == 1 {
		client.Logger = zap.NewNop()
		return upstream.NewWithConfig("/protoactor", client)
	}
	return etcd.New(etcd.Config{Client: client})()
}

// server returns the address of a real etcd. Without one these tests fail: make stores starts it.
func server(t testing.TB) string {
	t.Helper()
	at := os.Getenv("CONCORD_ETCD")
	if at == "" {
		t.Fatal("CONCORD_ETCD names no server: run make stores")
	}
	return at
}

func TestProvider(t *testing.T) {
	gate := clustertest.NewGate(t, server(t))
	t.Setenv(endpoint, gate.Address())
	clustertest.Run(t, clustertest.Config{Server: gate.Server()})
}

// Members with our provider and with Proto.Actor's form one cluster. They start one by one, because
// Proto.Actor's provider never lists a member that joins while it starts.
func TestProvider_SpeaksWithProtoActors(t *testing.T) {
	t.Setenv(endpoint, server(t))
	t.Setenv(mixed, "yes")
	clustertest.Run(t, clustertest.Config{OneByOne: true, Except: map[string]string{
		"P16": "Proto.Actor's provider drops who was paused with it",
		"P15": "Proto.Actor's provider races with itself when it stops",
		"P11": "Proto.Actor's provider never closes its client",
		"P12": "Proto.Actor's provider sees clusters whose name begins with its own",
	}})
}
