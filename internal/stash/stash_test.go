package stash_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/stash"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func messages(s *stash.Stash) (out []int) {
	for e := range s.All() {
		out = append(out, e.Message.(int))
	}
	return out
}

func TestFullRefusesAndCounts(t *testing.T) {
	s := stash.New(2)
	require.True(t, s.Push(stash.Entry{Message: 1}))
	require.True(t, s.Push(stash.Entry{Message: 2}))
	require.True(t, s.Full())
	require.False(t, s.Push(stash.Entry{Message: 3}))
	require.Equal(t, []int{1, 2}, messages(s))
	require.EqualValues(t, 1, s.Dropped())
	require.Equal(t, 2, s.Clear())
	require.Zero(t, s.Len())
	require.True(t, s.Push(stash.Entry{Message: 4}))
	var zero stash.Stash
	require.False(t, zero.Push(stash.Entry{}), "the zero value takes nothing")
	require.False(t, stash.New(-1).Push(stash.Entry{}))
}

func TestDrainEndsThoughTheLoopPushesBack(t *testing.T) {
	s := stash.New(3)
	for i := range 3 {
		s.Push(stash.Entry{Message: i})
	}
	n := 0
	for e := range s.Drain() {
		n++
		require.True(t, s.Push(e), "there is room: it was taken out before")
	}
	require.Equal(t, 3, n)
	require.Equal(t, []int{0, 1, 2}, messages(s))
}

func TestBreakingOffADrainLeavesTheRest(t *testing.T) {
	s := stash.New(3)
	for i := range 3 {
		s.Push(stash.Entry{Message: i})
	}
	for range s.Drain() {
		break
	}
	require.Equal(t, []int{1, 2}, messages(s))
}

func TestClearWhileDrainingEndsIt(t *testing.T) {
	s := stash.New(3)
	for i := range 3 {
		s.Push(stash.Entry{Message: i})
	}
	n := 0
	for range s.Drain() {
		n++
		s.Clear()
	}
	require.Equal(t, 1, n)
}

// TestAgainstSlice compares any sequence of operations with the obvious implementation.
func TestAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		s, next := stash.New(limit), 0
		var model []int
		var dropped uint64
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				ok := s.Push(stash.Entry{Message: next})
				require.Equal(t, len(model) < limit, ok)
				if ok {
					model = append(model, next)
				} else {
					dropped++
				}
				next++
			},
			"drain": func(t *rapid.T) {
				n := rapid.IntRange(0, 5).Draw(t, "n")
				for e := range s.Drain() {
					require.Equal(t, model[0], e.Message)
					model = model[1:]
					if n--; n <= 0 {
						break
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), s.Len())
				require.Equal(t, dropped, s.Dropped())
				got := messages(s)
				for i := range model {
					require.Equal(t, model[i], got[i])
				}
			},
		})
	})
}

func TestSenderAndHeaderSurvive(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		s := stash.New(2)
		done := make(chan struct{})
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				s.PushContext(ctx)
				close(done)
			}
		}))
		from := actor.NewPID("elsewhere", "me")
		sent := &actor.MessageEnvelope{Message: "hello", Sender: from}
		sent.SetHeader("k", "v")
		system.Root.Send(pid, sent)
		<-done
		for e := range s.Drain() {
			back := e.Envelope()
			require.Equal(t, "hello", back.Message)
			require.True(t, from.Equal(back.Sender))
			require.Equal(t, "v", back.GetHeader("k"))
		}
	})
}
