package lane_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

func newOut() lane.Out { return lane.NewOut(lane.NewRoom(80, 1<<20)) }

func body(value int) core.Body { return core.Body{ID: "x", Value: value, Size: 36} }

// S11d: nothing is sent after Shut, and Last is the number of the last message before.
func TestOut_NumbersRiseUnderATenure(t *testing.T) {
	o := newOut()
	_, ok := o.Next(36)
	require.False(t, ok, "no tenure is known")
	o.Open(b, 7, lane.NewFlow(1000))
	require.True(t, o.Away())
	for n := range uint64(3) {
		ticket, ok := o.Next(36)
		require.True(t, ok)
		ticket.Ask = 0
		require.Equal(t, lane.Ticket{To: b, Token: 7, Number: n + 1}, ticket)
	}
	o.Shut()
	_, ok = o.Next(36)
	require.False(t, ok)
	require.False(t, o.Away())
	require.EqualValues(t, 3, o.Last(7))
	o.Open(c, 8, lane.NewFlow(1000))
	require.EqualValues(t, 3, o.Last(7), "nothing was sent under 8")
	ticket, ok := o.Next(36)
	require.True(t, ok)
	require.Equal(t, lane.Ticket{To: c, Token: 8, Number: 1}, ticket)
	require.Zero(t, o.Last(7))
	o.Open(b, 9, nil)
	_, ok = o.Next(36)
	require.False(t, ok, "its host is this member")
}

// S39: the messages of all shards are within the credit of their host, which is asked in time, and
// another host has its own.
func TestOut_HasTheCreditOfItsHost(t *testing.T) {
	first, second, other := newOut(), newOut(), newOut()
	f := lane.NewFlow(1000)
	first.Open(b, 7, f)
	second.Open(b, 8, f)
	other.Open(c, 9, lane.NewFlow(1000))
	asked := uint64(0)
	for n := range 10 {
		o := [...]*lane.Out{&first, &second}[n%2]
		ticket, ok := o.Next(36) // 100 bytes with what each counts for
		require.True(t, ok)
		asked = max(asked, ticket.Ask)
	}
	require.EqualValues(t, 1000, asked)
	_, ok := first.Next(36)
	require.False(t, ok)
	_, ok = other.Next(36)
	require.True(t, ok)
	require.True(t, f.Open())
	require.False(t, f.Confirm(2000), "more than was sent")
	require.True(t, f.Confirm(800))
	require.False(t, f.Confirm(700), "it is late")
	_, ok = second.Next(36)
	require.True(t, ok)
	require.EqualValues(t, 1100, f.Mark())
	require.True(t, f.Confirm(1100))
	require.False(t, f.Open())
}

// S17: what waits is bounded for one shard and for all, and the newest are refused.
func TestOut_WhatWaitsIsBoundedAndInOrder(t *testing.T) {
	room := lane.NewRoom(16, 2000)
	first, second := lane.NewOut(room), lane.NewOut(room)
	wait := func(o *lane.Out, value int) (bool, bool) { return o.Wait(body(value)) }
	isFirst, ok := wait(&first, 1)
	require.True(t, isFirst && ok)
	isFirst, ok = wait(&first, 2)
	require.True(t, !isFirst && ok)
	_, ok = wait(&first, 3)
	require.False(t, ok, "an eighth")
	_, ok = second.Wait(core.Body{ID: "x", Size: 251})
	require.False(t, ok, "an eighth of the bytes")
	_, ok = wait(&second, 4)
	require.True(t, ok)
	b, _ := first.First()
	require.Equal(t, 1, b.Value)
	first.Pop()
	_, ok = wait(&first, 5)
	require.True(t, ok, "there is room again")
	left := first.Withdraw()
	require.Len(t, left, 2)
	require.Equal(t, 2, left[0].Value)
	require.Equal(t, 5, left[1].Value)
	require.Zero(t, first.Len())
	isFirst, _ = wait(&first, 6)
	require.True(t, isFirst)

	small := lane.NewRoom(1, 1000)
	first, second = lane.NewOut(small), lane.NewOut(small)
	_, ok = wait(&first, 1)
	require.True(t, ok)
	_, ok = wait(&second, 2)
	require.False(t, ok, "of all")
	first.Pop()
	_, ok = wait(&second, 2)
	require.True(t, ok)
}

// Senders pass or wait, and one goroutine opens, drains and shuts, each under the lock of the
// shard, as a shard does. Every message leaves once, in the order of its sender, and numbers rise.
func TestOut_KeepsTheOrderOfEachSender(t *testing.T) {
	const senders, each = 4, 2000
	type sent struct{ sender, value int }
	var (
		mu     sync.Mutex
		o      = lane.NewOut(lane.NewRoom(8*senders*each, 1<<30))
		out    []sent
		number uint64
		of     uint64
	)
	pass := func(v sent) bool {
		ticket, ok := o.Next(36)
		if ok {
			if ticket.Token != of {
				number, of = 0, ticket.Token
			}
			number++
			if ticket.Number != number {
				t.Errorf("number %d after %d under %d", ticket.Number, number-1, of)
			}
			out = append(out, v)
		}
		return ok
	}
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for value := range each {
				v := sent{sender, value}
				mu.Lock()
				if o.Len() > 0 || !pass(v) {
					o.Wait(core.Body{Value: v})
				}
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	for token, over := uint64(1), false; !over; token++ {
		select {
		case <-done:
			over = true
		default:
		}
		mu.Lock()
		o.Open(b, token, lane.NewFlow(1<<30))
		mu.Unlock()
		for { // the lock is not held all the time
			mu.Lock()
			first, ok := o.First()
			if ok && pass(first.Value.(sent)) {
				o.Pop()
			}
			mu.Unlock()
			if !ok {
				break
			}
		}
		if !over {
			mu.Lock()
			o.Shut()
			mu.Unlock()
		}
	}
	next := [senders]int{}
	for _, v := range out {
		require.Equal(t, next[v.sender], v.value)
		next[v.sender]++
	}
	require.Len(t, out, senders*each)
}
