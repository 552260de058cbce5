package automanaged_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/testkit/clustertest"
)

// whole makes the mixed cluster obey all rules that Proto.Actor's provider can obey.
var whole = flag.Bool("whole", false, "all rules in a cluster with Proto.Actor's provider")

// Proto.Actor's provider drops a member whose answer takes two seconds. Ours waits longer than a
// busy machine delays a process, and in the test of pauses less than the pause.
const (
	refresh   = 200 * time.Millisecond
	dropAfter = time.Minute
	pause     = 8 * time.Second
)

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
	c := automanaged.Config{Port: m.Spare[m.Index], Hosts: hosts, Refresh: refresh,
		DropAfter: dropAfter}
	if strings.HasPrefix(m.Cluster, "p16-") {
		c.DropAfter = pause - 2*time.Second
	}
	return automanaged.New(c)()
}

// mixed is the environment variable that makes every other member use Proto.Actor's provider.
const mixed = "CONCORD_AUTOMANAGED_MIXED"

func TestProvider(t *testing.T) {
	clustertest.Run(t, clustertest.Config{Listens: true, Pause: pause, KeptFor: 3 * time.Second})
}

// Members with our provider and with Proto.Actor's form one cluster: they list each other with
// their kinds, and drop members that have died or left.
func TestProvider_SpeaksWithProtoActors(t *testing.T) {
	t.Setenv(mixed, "yes")
	c := clustertest.Config{Except: map[string]string{
		"P16": "Proto.Actor's provider drops who was paused with it",
		"P15": "Proto.Actor's provider races with itself when it stops",
		"P11": "Proto.Actor's provider leaves idle connections behind",
		"P13": "Proto.Actor's provider logs an error when it stops",
	}}
	if !*whole {
		for _, rule := range []string{"P1", "P4", "P7", "P8", "P10", "P12"} {
			c.Except[rule] = "it says nothing of a mixed cluster that P2, P3, P5 and P6 do not; -args -whole checks it"
		}
	}
	clustertest.Run(t, c)
}
