package distributeddata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoss_NamesKeysIfAnyAreKnown(t *testing.T) {
	t.Parallel()
	err := loss(2, []string{"cart", "visits"}, ErrQuorum)
	require.ErrorIs(t, err, ErrQuorum)
	require.ErrorContains(t, err,
		`2 of the updates made here (keys ["cart" "visits"]) are not known to be on any other replica`)
	require.ErrorContains(t, loss(1, nil, ErrQuorum),
		"1 of the updates made here are not known to be on any other replica")
}
