package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/node"
)

// A nil option was dereferenced.
func TestNil_OptionsAreInvalid(t *testing.T) {
	_, err := node.Remote(node.Config{}, nil)
	require.EqualError(t, err, "node: invalid configuration: an option is nil")
}
