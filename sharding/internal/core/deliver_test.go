package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

var hello = core.Body{ID: "x", Size: 1}

func begin(number uint64) core.BeginDelivery {
	return core.BeginDelivery{Shard: 0, Number: number, Body: hello}
}

// carries is the effect that sends a delivery to a member.
func carries(to core.Member, token, delivery uint64, again bool) core.Effect {
	return core.Tell{To: to, Message: core.Data{Shard: 0, Token: token, Body: hello,
		Delivery: delivery, Again: again}}
}

// datas returns the numbers of the deliveries that are sent.
func datas(effects []core.Effect) (sent []uint64) {
	for _, e := range effects {
		if t, ok := e.(core.Tell); ok {
			if d, ok := t.Message.(core.Data); ok {
				sent = append(sent, d.Delivery)
			}
		}
	}
	return sent
}

// S38: a delivery is sent under each new tenure, in order, and concluded by its confirmation.
func TestDelivery_IsSentUntilConfirmed(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	require.Empty(t, s.step(begin(1)), "no tenure is known")
	s.step(begin(2))
	require.Equal(t, []core.Effect{core.Open{Shard: 0, Host: b, Token: 7},
		carries(b, 7, 1, false), carries(b, 7, 2, false)},
		s.hear(b, core.Active{Shard: 0, Token: 7}))
	s.step(begin(3))
	require.Equal(t, []core.Effect{core.Conclude{Shard: 0, Number: 2, Body: hello,
		Outcome: core.Confirmed}}, s.hear(b, core.Confirm{Shard: 0, Number: 2}))
	require.Empty(t, s.hear(b, core.Confirm{Shard: 0, Number: 2}), "it is concluded once")
	s.hear(b, core.Pause{Shard: 0, Token: 7})
	s.step(begin(4))
	require.Equal(t, []core.Effect{core.Open{Shard: 0, Host: c, Token: 8},
		carries(c, 8, 1, true), carries(c, 8, 3, true), carries(c, 8, 4, false)},
		s.hear(c, core.Active{Shard: 0, Token: 8}))
	require.Len(t, r.Abandon(0), 3)
}

// S38: a delivery without a confirmation is sent again, at growing intervals.
func TestDelivery_IsSentAgainLessAndLessOften(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	s.step(begin(1))
	sent := 0
	for range 60_000 { // a minute
		sent += len(datas(s.step(core.Wake{})))
	}
	most := int(60_000 * ms / config(1).MaxResend)
	require.InDelta(t, most, sent, 5)
	s.step(core.EndDelivery{Shard: 0, Number: 1})
	for range 10_000 {
		require.Empty(t, datas(s.step(core.Wake{})), "its caller has given up")
	}
}

// A region with deliveries and no tenure asks their home for it.
func TestDelivery_AsksForTheTenure(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, b))
	s.step(begin(1))
	asked := false
	for range 1000 {
		for _, e := range s.step(core.Wake{}) {
			asked = asked || e == core.Tell{To: b, Message: core.Where{Shard: 0}}
		}
	}
	require.True(t, asked)
}

// S38d: as many deliveries as the buffer has places for one shard; further ones are not accepted.
func TestDelivery_IsBounded(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	full := func(number uint64) []core.Effect {
		return []core.Effect{core.Conclude{Shard: 0, Number: number, Body: hello,
			Outcome: core.Full}}
	}
	for n := range uint64(buffer) {
		require.Empty(t, s.step(begin(n+1)))
	}
	require.Equal(t, full(buffer+1), s.step(begin(buffer+1)))
	s.step(core.EndDelivery{Shard: 0, Number: 5})
	require.Empty(t, s.step(begin(buffer+2)))
	require.Equal(t, full(buffer+3), s.step(begin(buffer+3)))

	large := begin(1)
	large.Body.Size = config(1).BufferBytes/8 + 1
	require.Len(t, tell(core.NewRegion(config(1))).step(large), 1, "it has too many bytes")

	out := r.Abandon(0)
	require.Len(t, out, buffer)
	require.Equal(t, core.Unsent, out[0].Outcome)
	require.Empty(t, s.step(begin(buffer+4)), "nothing is left of them")
}

// What was sent and not confirmed is in doubt when its region ends.
func TestDelivery_ThatWasSentIsInDoubt(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	s.hear(b, core.Active{Shard: 0, Token: 7})
	s.step(begin(1))
	require.Equal(t, []core.Conclude{{Shard: 0, Number: 1, Body: hello, Outcome: core.InDoubt}},
		r.Abandon(0))
}

// hosting is a region that runs shard 0 under token 7.
func hosting(cfg core.Config) *story {
	s := tell(core.NewRegion(cfg))
	s.hear(c, assigned(1, a))
	s.step(core.Held{Shard: 0, Attempt: 1, Token: 7})
	return s
}

func handled(number uint64, ok bool) core.Handled {
	return core.Handled{Shard: 0, Token: 7, From: b, Number: number, OK: ok}
}

// S38b, S38c: what a host does with copies of a delivery.
func TestDelivery_ACopyIsDroppedUntilTheFirstHasFailed(t *testing.T) {
	s := hosting(config(1))
	number := uint64(0)
	copyOf := func(delivery uint64) []core.Effect {
		number++
		return s.hear(b, core.Data{Shard: 0, Token: 7, Number: number, Body: hello,
			Delivery: delivery, Again: number > 1})
	}
	passes := func(delivery uint64, again bool) []core.Effect {
		return []core.Effect{core.Deliver{Shard: 0, Token: 7, Body: hello, Receipt: core.Receipt{
			From: b, Number: delivery, Again: again}}}
	}
	confirms := core.Tell{To: b, Message: core.Confirm{Shard: 0, Number: 1}}
	drops := core.Drop{Shard: 0, Repeated: true}
	require.Equal(t, passes(1, false), copyOf(1))
	require.Equal(t, []core.Effect{drops}, copyOf(1), "it waits for its entity")
	require.Empty(t, s.step(handled(1, false)))
	require.Equal(t, passes(1, true), copyOf(1), "the first was not handled")
	require.Equal(t, []core.Effect{confirms}, s.step(handled(1, true)))
	require.Equal(t, []core.Effect{drops, confirms}, copyOf(1),
		"the confirmation may have been lost")
}

// S38c: a host forgets the oldest of the deliveries that were handled.
func TestDelivery_AHostRemembersTheLastOnly(t *testing.T) {
	cfg := config(1)
	cfg.Handled = 10
	s := hosting(cfg)
	for n := range uint64(25) {
		s.hear(b, core.Data{Shard: 0, Token: 7, Number: n + 1, Body: hello, Delivery: n + 1})
		s.step(handled(n+1, true))
	}
	passed := 0
	for n := range uint64(25) {
		for _, e := range s.hear(b, core.Data{Shard: 0, Token: 7, Number: 100 + n, Body: hello,
			Delivery: n + 1, Again: true}) {
			if _, ok := e.(core.Deliver); ok {
				require.LessOrEqual(t, n+1, uint64(15))
				passed++
			}
		}
	}
	require.Equal(t, 15, passed)
}

// An entity drains its mailbox during a hand-over: what it handles then is confirmed too.
func TestDelivery_IsConfirmedWhenItsShardMoves(t *testing.T) {
	s := hosting(config(1))
	s.hear(b, core.Data{Shard: 0, Token: 7, Number: 1, Body: hello, Delivery: 1})
	s.hear(c, assigned(2, b, a))
	require.Contains(t, s.step(handled(1, true)),
		core.Tell{To: b, Message: core.Confirm{Shard: 0, Number: 1}})
}
