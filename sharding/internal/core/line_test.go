package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// S11d: a sender that needs no step of the region sends nothing after the region's Flush, which
// reports the number of its last message.
func TestLine_IsShutWhenTheHostPauses(t *testing.T) {
	r := core.NewRegion(config(1))
	s, line := tell(r), r.Line(0)
	require.False(t, line.Open())
	_, ok := line.Next(36)
	require.False(t, ok, "no tenure is known")
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.True(t, line.Open())
	for n := range uint64(3) {
		ticket, ok := line.Next(36)
		require.True(t, ok)
		require.Equal(t, core.Ticket{To: b, Token: 7, Number: n + 1}, ticket)
	}
	flush := core.Tell{To: b, Message: core.Flush{Shard: 0, Token: 7, Number: 3}}
	require.Equal(t, []core.Effect{flush}, s.hear(b, core.Pause{Shard: 0, Token: 7}))
	_, ok = line.Next(36)
	require.False(t, ok)
	require.False(t, line.Open())
	s.hear(c, core.Active{Shard: 0, Token: 8})
	ticket, ok := line.Next(36)
	require.True(t, ok)
	require.Equal(t, core.Ticket{To: c, Token: 8, Number: 1}, ticket)
}

// S12c: numbers are in the order in which messages are sent, although the region has some messages
// numbered before they are sent.
func TestLine_WaitsForMessagesThatTheRegionHasNumbered(t *testing.T) {
	r := core.NewRegion(config(1))
	s, line := tell(r), r.Line(0)
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.Equal(t, []uint64{1}, datas(s.step(begin(1))))
	_, ok := line.Next(36)
	require.False(t, ok, "number 1 has not been sent")
	line.Sent()
	ticket, ok := line.Next(36)
	require.True(t, ok)
	require.EqualValues(t, 2, ticket.Number)
}

// S39: the messages of both ways are within the credit of the host, which is asked in time.
func TestLine_HasTheCreditOfTheHost(t *testing.T) {
	cfg := config(2)
	cfg.Credit = 1000
	r := core.NewRegion(cfg)
	s, line := tell(r), r.Line(0)
	s.hear(b, core.Active{Shard: 0, Token: 7})
	s.hear(b, core.Active{Shard: 1, Token: 8})
	asked := uint64(0)
	for range 9 {
		ticket, ok := line.Next(36) // 100 bytes with what each counts for
		require.True(t, ok)
		asked = max(asked, ticket.Ask)
	}
	require.EqualValues(t, 800, asked)
	require.Equal(t, []int{9}, bodies(s.step(sends(1, 9)), b))
	_, ok := line.Next(36)
	require.False(t, ok)
	s.hear(b, core.Taken{Bytes: 800})
	_, ok = line.Next(36)
	require.True(t, ok)
}

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

// S11f: a host waits for a delivery that was accepted and is on its way to the region.
func TestIntake_ADeliveryOnItsWayIsWaitedFor(t *testing.T) {
	s := givingUp(t)
	stop := core.Stop{Shard: 0, Token: 7}
	require.Equal(t, lane.Awaited, s.in.Take(b, data(1, 5)))
	require.NotContains(t, s.hear(b, core.Flush{Shard: 0, Token: 7, Number: 1}), stop)
	out := s.step(core.Arrived{From: b, Data: data(1, 5)})
	require.Contains(t, out, stop)
	require.Contains(t, out, core.Deliver{Shard: 0, Token: 7, Body: hello, Receipt: &core.Receipt{
		From: b, Number: 5}})
}
