package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/node"
)

// A nil function was registered, and failed when the member stopped; a nil system and a nil option
// were dereferenced.
func TestNil_ArgumentsAreInvalid(t *testing.T) {
	_, err := node.OnStop(simnet.NewSystem("s"), node.Ingress, "shop", nil)
	require.ErrorIs(t, err, node.ErrInvalid)
	require.ErrorContains(t, err, "shop: the function to run at the stop is nil")
	_, err = node.Remote(node.Config{}, nil)
	require.EqualError(t, err, "node: invalid configuration: an option is nil")
	_, err = node.OnStop(nil, node.Ingress, "shop", func(context.Context) error { return nil })
	require.ErrorIs(t, err, node.ErrInvalid)
	require.ErrorContains(t, err, "shop: no actor system")
}
