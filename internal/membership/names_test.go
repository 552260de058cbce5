package membership_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/membership"
)

// A line of an error or a log names a few members, however large the cluster is.
func TestNames_NamesAFewMembers(t *testing.T) {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprint(i))
	}
	require.Equal(t, "0, 1, 2, 3, 4, 5, 6, 7, 8", membership.Names(names))
	require.Equal(t, "0, 1, 2, 3, 4, 5, 6, 7 and 2 more", membership.Names(append(names, "9")))
	require.Empty(t, membership.Names(nil))
}
