package snippets

import (
	"log"
	"log/slog"
	"net/http"
	"os"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

var carts = distributeddata.NewPrefix("cart-", crdt.ORSet[string]{})

// Cockpit is of docs/cockpit.md.
func Cockpit(cfg node.RunConfig, metrics http.Handler,
	start func(*node.Node) (*distributeddata.Replicator, *singleton.Singleton,
		*sharding.Region[*wrapperspb.StringValue], error)) error {
	handler := slog.NewTextHandler(os.Stderr, nil)
	var health node.Health
	c, err := cockpit.New(cockpit.Config{
		Health: &health,
		// such as promhttp.Handler(); served as /metrics
		Metrics: metrics,
		Values:  []cockpit.Values{cockpit.ValuesOf(carts)}, // default: no values
		// their views are shown too
		Peers: []string{"http://10.0.0.2:7070", "http://10.0.0.3:7070"},
	})
	if err != nil {
		return err
	}
	go func() { log.Println(http.ListenAndServe("127.0.0.1:7070", c)) }()
	cfg.Health = &health
	cfg.Logger = slog.New(c.Log(handler)) // log lines become events
	node.Main(cfg, func(n *node.Node) error {
		dd, clerk, orders, err := start(n)
		if err != nil {
			return err
		}
		return c.Attach(n, cockpit.Sources{
			Replicators: map[string]*distributeddata.Replicator{"shop": dd},
			Singletons:  map[string]*singleton.Singleton{"clerk": clerk},
			Shards:      []cockpit.Shards{orders},
		})
	})
	return nil
}
