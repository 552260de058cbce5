package lane_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

var (
	b = core.Member{ID: "b", Incarnation: 1}
	c = core.Member{ID: "c", Incarnation: 1}
)

func data(token, number, delivery uint64) core.Data {
	return core.Data{Token: token, Number: number, Delivery: delivery}
}

// S12, S12b: before and after a tenure nothing is accepted, and each number once.
func TestIn_TakesUnderOneTenureInOrder(t *testing.T) {
	var in lane.In
	require.Equal(t, lane.Strange, in.Take(b, data(7, 1, 0)))
	require.Equal(t, lane.Strange, in.Take(b, data(0, 1, 0)), "there is no tenure 0")
	_, answer := in.Admit(core.Admit{Token: 7})
	require.False(t, answer)
	require.Equal(t, lane.Accepted, in.Take(b, data(7, 2, 0)))
	require.Equal(t, lane.Repeated, in.Take(b, data(7, 2, 0)))
	require.Equal(t, lane.Repeated, in.Take(b, data(7, 1, 0)))
	require.Equal(t, lane.Accepted, in.Take(c, data(7, 1, 0)))
	require.Equal(t, lane.Strange, in.Take(b, data(6, 3, 0)))
	in.Admit(core.Admit{})
	require.Equal(t, lane.Strange, in.Take(b, data(7, 3, 0)))
	in.Admit(core.Admit{Token: 8})
	require.Equal(t, lane.Accepted, in.Take(b, data(8, 1, 0)), "numbers begin again")
}

// S11e, S11f: what was accepted before the count is in the answer, and what follows is awaited.
func TestIn_CountsWhatItHasAccepted(t *testing.T) {
	var in lane.In
	in.Admit(core.Admit{Token: 7})
	in.Take(b, data(7, 1, 5))
	in.Take(b, data(7, 2, 0))
	in.Take(c, data(7, 1, 6))
	answer, ok := in.Admit(core.Admit{Shard: 3, Token: 7, Count: true})
	require.True(t, ok)
	require.Equal(t, core.Counted{Shard: 3, Token: 7, Deliveries: 2,
		Last: map[core.Member]uint64{b: 2, c: 1}}, answer)
	require.Equal(t, lane.Awaited, in.Take(b, data(7, 3, 0)))
	require.Equal(t, lane.Repeated, in.Take(b, data(7, 2, 0)), "the numbers go on")
	require.EqualValues(t, 2, answer.Last[b], "the answer does not change")
}
