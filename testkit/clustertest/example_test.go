package clustertest_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/testkit/clustertest"
)

// The test of a cluster provider starts members as processes of the test's own program: TestMain
// calls Main, which does not return in such a process.
func Example() {
	// of the provider under test
	var provide func(clustertest.Member) (cluster.ClusterProvider, error)
	_ = func(m *testing.M) { // func TestMain(m *testing.M)
		clustertest.Main(provide)
		m.Run()
	}
	_ = func(t *testing.T) { // func TestProvider(t *testing.T)
		clustertest.Run(t, clustertest.Config{KeptFor: 3 * time.Second})
	}
}
