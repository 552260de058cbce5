package snippets

import (
	"context"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/node"
)

// Billed is of the README.
func Billed(ctx context.Context, n *node.Node) error {
	return n.Session.Lease("billing").Do(ctx,
		func(ctx context.Context, g *coordination.Grant) error {
			// every write carries the token; its target refuses lower tokens
			return bill(ctx, g.Token())
		})
}

func bill(context.Context, coordination.Token) error { return nil }
