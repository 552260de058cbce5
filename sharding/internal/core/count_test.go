package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// givingUp returns a region that hosts shard 0 under token 7 and is giving it up, with the answer
// of c.
func givingUp(t *testing.T) *story {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	require.Contains(t, s.step(core.Held{Shard: 0, Attempt: 1, Token: 7}),
		core.Start{Shard: 0, Token: 7})
	s.hear(c, assigned(2, b, a))
	require.NotContains(t, s.hear(c, core.Flush{Shard: 0, Token: 7}), core.Stop{Shard: 0, Token: 7})
	return s
}

func data(number, delivery uint64) core.Data {
	return core.Data{Shard: 0, Token: 7, Number: number, Body: hello, Delivery: delivery}
}

// S11e: a host that waits for messages learns of the last one, though it needs no step of the
// region, and accepts nothing after that.
func TestIntake_TheLastMessageEndsTheWait(t *testing.T) {
	s := givingUp(t)
	stop := core.Stop{Shard: 0, Token: 7}
	require.NotContains(t, s.hear(b, core.Flush{Shard: 0, Token: 7, Number: 2}), stop)
	require.Equal(t, lane.Awaited, s.in.Take(b, data(1, 0)))
	require.NotContains(t, s.step(
		core.Arrived{From: b, Data: core.Data{Shard: 0, Token: 7, Number: 1}}), stop)
	require.Equal(t, lane.Awaited, s.in.Take(b, data(2, 0)))
	require.Contains(t, s.step(
		core.Arrived{From: b, Data: core.Data{Shard: 0, Token: 7, Number: 2}}), stop)
	require.Equal(t, lane.Strange, s.in.Take(b, data(3, 0)))
	require.Contains(t, s.hear(b, data(3, 0)),
		core.Tell{To: b, Message: core.NotHere{Shard: 0, Token: 7}})
}

// S11f: a host waits for a delivery that was accepted and is on its way to the region, before the
// shard is given up and after.
func TestIntake_ADeliveryOnItsWayIsWaitedFor(t *testing.T) {
	s := hosting(config(1))
	stop := core.Stop{Shard: 0, Token: 7}
	require.Equal(t, lane.Accepted, s.in.Take(b, data(1, 5)))
	s.hear(c, assigned(2, b, a))
	require.Equal(t, lane.Awaited, s.in.Take(b, data(2, 6)))
	s.hear(c, core.Flush{Shard: 0, Token: 7})
	require.NotContains(t, s.hear(b, core.Flush{Shard: 0, Token: 7, Number: 2}), stop)
	require.NotContains(t, s.step(core.Arrived{From: b, Data: data(1, 5)}), stop)
	out := s.step(core.Arrived{From: b, Data: data(2, 6)})
	require.Contains(t, out, stop)
	require.Contains(t, out, core.Deliver{Shard: 0, Token: 7, Body: hello, Receipt: core.Receipt{
		From: b, Number: 6}})

	s = hosting(config(1))
	s.in.Take(b, data(1, 5))
	s.hear(c, assigned(2, b, a))
	s.hear(c, core.Flush{Shard: 0, Token: 7})
	require.NotContains(t, s.hear(b, core.Flush{Shard: 0, Token: 7, Number: 1}), stop)
	require.Contains(t, s.step(core.Arrived{From: b, Data: data(1, 5)}), stop)
}
