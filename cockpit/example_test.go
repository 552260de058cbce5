package cockpit_test

import (
	"fmt"
	"net/http"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// A member serves the page of its cluster to browsers on its own machine.
func Example() {
	health := &node.Health{}
	c, err := cockpit.New(cockpit.Config{Health: health})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { fmt.Println(http.ListenAndServe("127.0.0.1:7070", c)) }()
	node.Main(node.RunConfig{
		Cluster:  "shop",
		Remote:   node.Config{Port: 7000},
		Provider: automanaged.New(automanaged.Config{Hosts: []string{"127.0.0.1:6330"}}),
		Health:   health,
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 1})
		if err != nil {
			return err
		}
		return c.Attach(n, cockpit.Sources{
			Replicators: map[string]*distributeddata.Replicator{"shop": dd}})
	})
}
