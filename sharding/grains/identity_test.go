package grains

import (
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEntityID_IsOneForEachGrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			return string(rapid.SliceOfN(rapid.SampledFrom([]byte("a/%\x00\n\xff\xc3\xa42F$")), 0,
				12).Draw(t, label))
		}
		of := &cluster.ClusterIdentity{Kind: "k" + draw("kind"), Identity: draw("identity")}
		id, err := entityID(of)
		require.NoError(t, err)
		back, err := identityOf(id)
		require.NoError(t, err)
		require.Equal(t, of.Kind, back.Kind)
		require.Equal(t, of.Identity, back.Identity)
		require.NotContains(t, id, "\x00")
	})
}

func TestIdentityOf_RefusesWhatIsNoID(t *testing.T) {
	for _, id := range []string{"", "k", "/a", "k/%", "k/%g0", "k/a%2", "%zz/a"} {
		_, err := identityOf(id)
		require.Error(t, err, id)
	}
	_, err := entityID(&cluster.ClusterIdentity{Kind: "k", Identity: strings.Repeat("%", 171)})
	require.ErrorContains(t, err, "at most 512")
}
