package snippets

import (
	"context"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/singleton"
)

var hosts = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"}

// Clerk is the singleton of the README.
type Clerk struct{ tenure coordination.Tenure }

// Receive implements actor.Actor.
func (c *Clerk) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok && c.tenure.Check() == nil {
		ctx.Respond(m)
	}
}

// Cart is what the README puts into a shop.
var Cart = distributeddata.NewKey("cart-17", crdt.ORSet[string]{})

func main() {
	node.Main(node.RunConfig{
		Cluster:  "shop",
		Remote:   node.Config{Port: 7001},
		Provider: automanaged.New(automanaged.Config{Port: 8001, Hosts: hosts}),
		Store:    func() (coordination.Store, error) { return file.Open("/var/lib/shop/leases") },
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 3})
		if err != nil {
			return err
		}
		clerk, err := singleton.New(n.System, n.Session,
			singleton.Config{Name: "clerk", MinMembers: 3},
			func(t coordination.Tenure) actor.Actor { return &Clerk{tenure: t} })
		if err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error { return serve(ctx, n, dd, clerk) })
		return nil
	})
}

var _ = main

func serve(ctx context.Context, n *node.Node, dd *distributeddata.Replicator,
	clerk *singleton.Singleton) error {
	_, err := Cart.Update(ctx, dd, func(w *crdt.Writer, items *crdt.ORSet[string]) error {
		items.Add(w, "milk", "bread")
		return nil
	}, distributeddata.Majority)
	if err != nil {
		return err
	}
	items, err := Cart.Get(ctx, dd) // local, never waits
	if err != nil {
		return err
	}
	// Ask reaches the clerk on whichever member it runs, and waits while it runs on none: bound
	// ctx. Messages are protobuf messages.
	answer, err := clerk.Ask(ctx, wrapperspb.String("checkout cart-17"))
	if err != nil {
		return err
	}
	log.Println(items, answer)

	return n.Session.Lease("billing").Do(ctx,
		func(ctx context.Context, g *coordination.Grant) error {
			// every write carries the token; its target refuses lower tokens
			return bill(ctx, g.Token())
		})
}

func bill(context.Context, coordination.Token) error { return nil }
