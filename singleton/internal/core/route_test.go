package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/singleton/internal/core"
)

// TestRoute_ANewMemberFindsTheHostSoonAfterItIsListed plays a member that joins: the host ignores
// its questions until it lists the member, up to a second later. The member has found the host when
// it has waited twice as long.
func TestRoute_ANewMemberFindsTheHostSoonAfterItIsListed(t *testing.T) {
	const interval = time.Second
	for listed := time.Duration(0); listed <= interval; listed += interval / 100 {
		begin := time.Unix(1000, 0)
		r := core.NewRoute(interval)
		asked := r.Step(begin, core.View{Self: named("a"),
			Hosts: []core.Member{named("h"), named("a")}})
		questions, now := 0, begin
		for {
			require.Len(t, asked, 1, "at %v", now.Sub(begin))
			questions++
			ask, ok := asked[0].(core.Ask)
			require.True(t, ok)
			require.Equal(t, named("h"), ask.To)
			if now.Sub(begin) >= listed {
				r.Step(now, core.Host{From: ask.To, Round: ask.Round, Token: 1})
				break
			}
			now = r.NextWake()
			asked = r.Step(now, core.Wake{})
		}
		_, _, found := r.Host()
		require.True(t, found)
		require.LessOrEqual(t, now.Sub(begin), 2*listed+interval/32, "listed after %v", listed)
		require.LessOrEqual(t, questions, 7)
		require.Equal(t, now.Add(interval), r.NextWake(), "the host is asked once in an interval")
	}
}
