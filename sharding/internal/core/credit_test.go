package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// S39: what waits for credit of a host is sent when that has taken something, shard by shard.
func TestCredit_WhatWaitsIsSentWhenTheMemberHasTaken(t *testing.T) {
	s := tell(core.NewRegion(config(3)))
	for n := range 3 {
		s.hear(b, core.Active{Shard: n, Token: 7})
	}
	s.step(core.Blocked{Shard: 2, Token: 7})
	s.step(core.Blocked{Shard: 0, Token: 7})
	s.step(core.Blocked{Shard: 0, Token: 7})
	s.step(core.Blocked{Shard: 1, Token: 6}) // it is late
	require.Empty(t, s.hear(c, core.Taken{Bytes: 5}), "it is about others")
	require.Equal(t, []core.Effect{core.Open{Shard: 2, Host: b, Token: 7},
		core.Open{Shard: 0, Host: b, Token: 7}}, s.hear(b, core.Taken{Bytes: 5}))
	require.Empty(t, s.hear(b, core.Taken{Bytes: 6}))

	s.step(core.Blocked{Shard: 0, Token: 7})
	s.hear(b, core.Pause{Shard: 0, Token: 7})
	require.Empty(t, s.hear(b, core.Taken{Bytes: 7}), "it has another home soon")
}

// S39b: a question or an answer is lost.
func TestCredit_IsAskedForAgain(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	s.step(core.Blocked{Shard: 0, Token: 7})
	asked := 0
	for range 3000 {
		for _, e := range s.step(core.Wake{}) {
			if e == (core.Tell{To: b, Message: core.Sent{}}) {
				asked++
			}
		}
	}
	require.InDelta(t, 10, asked, 1)
	require.Equal(t, []core.Effect{core.Tell{To: c, Message: core.Taken{Bytes: 7}}},
		s.hear(c, core.Sent{Bytes: 7}))
}

// A delivery for which there is no credit is sent later, and is not lost.
func TestCredit_DeliveriesWaitToo(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.Equal(t, []core.Effect{carries(b, 7, 1, false)}, s.step(begin(1)))
	require.Empty(t, s.step(core.NoCredit{Shard: 0, Token: 7, Number: 1}))
	var sent []core.Effect
	for range 350 {
		sent = append(sent, s.step(core.Wake{})...)
	}
	require.Equal(t, []core.Effect{carries(b, 7, 1, false), core.Tell{To: b, Message: core.Sent{}}},
		sent, "it was not sent before, and b is asked what it has taken")
}
