package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// bodies returns the numbers of the messages that are sent to a member.
func bodies(effects []core.Effect, to core.Member) (numbers []int) {
	for _, e := range effects {
		if t, ok := e.(core.Tell); ok && t.To == to {
			if d, ok := t.Message.(core.Data); ok {
				numbers = append(numbers, d.Body.Value.(int))
			}
		}
	}
	return numbers
}

func sends(shard, value int) core.Send {
	return core.Send{Shard: shard, Body: core.Body{ID: "x", Value: value, Size: 36}} // 100 with what each counts for
}

// S39: b takes nothing. What is sent to it is bounded, as is what waits, and c gets its messages.
func TestCredit_AStoppedMemberHoldsUpNoOther(t *testing.T) {
	cfg := config(2)
	cfg.Credit = 1000
	r := core.NewRegion(cfg)
	s := tell(r)
	s.hear(b, core.Active{Shard: 0, Token: 7})
	s.hear(c, core.Active{Shard: 1, Token: 8})
	sent, refused := 0, 0
	for k := range 500 {
		out := s.step(sends(0, k))
		sent += len(bodies(out, b))
		for _, e := range out {
			if _, ok := e.(core.Refuse); ok {
				refused++
			}
		}
		if k < 10 {
			require.Equal(t, []int{k}, bodies(s.step(sends(1, k)), c))
		}
	}
	require.Equal(t, 10, sent)
	require.Equal(t, buffer, r.Waiting(0))
	require.Equal(t, 500-10-buffer, refused)
}

// S39: what has waited is sent in order as the member takes the messages before.
func TestCredit_MessagesWaitInOrder(t *testing.T) {
	cfg := config(1)
	cfg.Credit = 1000
	s := tell(core.NewRegion(cfg))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	var got []int
	for k := range 30 {
		got = append(got, bodies(s.step(sends(0, k)), b)...)
	}
	require.Len(t, got, 10)
	require.Empty(t, s.hear(b, core.Taken{Bytes: 2000}), "more than was sent")
	got = append(got, bodies(s.hear(b, core.Taken{Bytes: 500}), b)...)
	require.Len(t, got, 15)
	require.Empty(t, s.hear(b, core.Taken{Bytes: 400}), "it is late")
	got = append(got, bodies(s.hear(b, core.Taken{Bytes: 1500}), b)...)
	require.Len(t, got, 25)
	require.Empty(t, bodies(s.step(sends(0, 30)), b), "it waits behind others")
	got = append(got, bodies(s.hear(b, core.Taken{Bytes: 2500}), b)...)
	require.Len(t, got, 31)
	require.IsIncreasing(t, got)
}

// S39b: a question or an answer is lost.
func TestCredit_IsAskedForAgain(t *testing.T) {
	cfg := config(1)
	cfg.Credit = 1000
	s := tell(core.NewRegion(cfg))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	for k := range 30 {
		s.step(sends(0, k))
	}
	asked := 0
	for range 3000 {
		for _, e := range s.step(core.Wake{}) {
			if e == (core.Tell{To: b, Message: core.Sent{Bytes: 1000}}) {
				asked++
			}
		}
	}
	require.InDelta(t, 10, asked, 1)
	require.Equal(t, []core.Effect{core.Tell{To: c, Message: core.Taken{Bytes: 7}}},
		s.hear(c, core.Sent{Bytes: 7}))
}

// A member that was out of view for a moment has its credit again.
func TestCredit_BeginsAnewWithTheView(t *testing.T) {
	cfg := config(1)
	cfg.Credit = 1000
	r := core.NewRegion(cfg)
	s := tell(r)
	s.hear(b, core.Active{Shard: 0, Token: 7})
	for k := range 30 {
		s.step(sends(0, k))
	}
	s.step(core.View{Self: a, Members: []core.Member{a, c}})
	s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
	require.Len(t, bodies(s.hear(b, core.Active{Shard: 0, Token: 7}), b), 10)
	require.Equal(t, 10, r.Waiting(0))
}

// A delivery waits for credit like other messages, and is not lost.
func TestCredit_DeliveriesWaitToo(t *testing.T) {
	cfg := config(1)
	cfg.Credit = 100
	s := tell(core.NewRegion(cfg))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.Equal(t, []uint64{1}, datas(s.step(begin(1))))
	s.step(begin(2)) // 130 bytes in all
	require.Empty(t, datas(s.step(begin(3))))
	s.hear(b, core.Taken{Bytes: 130})
	var sent []uint64
	for range 400 {
		sent = append(sent, datas(s.step(core.Wake{}))...)
	}
	require.Equal(t, []uint64{3}, sent)
}
