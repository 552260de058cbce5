package stash_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/stash"
)

// messages returns the contents, which it takes out and pushes back.
func messages(s *stash.Stash) (out []int) {
	for e := range s.Drain() {
		out = append(out, e.Message.(int))
		s.Push(e)
	}
	return out
}

func TestPush_FullStashRejectsAndCounts(t *testing.T) {
	s := stash.New(2)
	require.True(t, s.Push(stash.Entry{Message: 1}))
	require.True(t, s.Push(stash.Entry{Message: 2}))
	require.False(t, s.Push(stash.Entry{Message: 3}))
	require.Equal(t, []int{1, 2}, messages(s))
	require.EqualValues(t, 1, s.Dropped())
	for range s.Drain() {
		break
	}
	require.True(t, s.Push(stash.Entry{Message: 4}))
	require.Equal(t, []int{2, 4}, messages(s))
	var zero stash.Stash
	require.False(t, zero.Push(stash.Entry{}), "the zero value takes nothing")
	require.False(t, stash.New(-1).Push(stash.Entry{}))
}

func TestDrain_EndsThoughTheLoopPushesBack(t *testing.T) {
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

func TestDrain_BreakLeavesTheRest(t *testing.T) {
	s := stash.New(3)
	for i := range 3 {
		s.Push(stash.Entry{Message: i})
	}
	for range s.Drain() {
		break
	}
	require.Equal(t, []int{1, 2}, messages(s))
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
			"look": func(t *rapid.T) {
				got := messages(s)
				require.Len(t, got, len(model))
				for i := range model {
					require.Equal(t, model[i], got[i])
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), s.Len())
				require.Equal(t, dropped, s.Dropped())
			},
		})
	})
}

func TestEntry_KeepsSenderAndHeader(t *testing.T) {
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

// loader keeps numbers until it is told that it is ready, and answers them with the number of
// messages that it has handled. A number in again is pushed once more; -1 makes the actor panic,
// and
// -2 discard what it keeps.
type loader struct {
	kept    *stash.Stash
	ready   bool
	again   map[int]bool
	handled []int
	out     chan<- []int
}

type (
	ready struct{}
	tell  struct{}
	hold  struct{ until <-chan struct{} }
)

var errFull = errors.New("full")

func (l *loader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *ready:
		l.ready = true
		l.kept.Replay(ctx)
	case *tell:
		l.out <- l.handled
	case *hold:
		<-m.until
	case *actor.Restarting, *actor.Stopped:
		l.kept.Discard(ctx)
	case int:
		switch {
		case l.ready && !l.again[m]:
			switch m {
			case -1:
				panic("as asked")
			case -2:
				l.kept.Discard(ctx)
			}
			l.handled = append(l.handled, m)
			ctx.Respond(len(l.handled))
		default:
			if l.ready {
				delete(l.again, m)
			}
			if !l.kept.PushContext(ctx) {
				ctx.Respond(errFull)
			}
		}
	}
}

// loading calls test with an actor that keeps at most three messages.
func loading(t *testing.T, again map[int]bool, test func(t *testing.T, root *actor.RootContext,
	pid *actor.PID, out <-chan []int)) {
	simnet.Bubble(t, func(t *testing.T) {
		system, out := simnet.NewSystem(""), make(chan []int, 1)
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &loader{kept: stash.New(3), again: again, out: out}
		}))
		test(t, system.Root, pid, out)
		_ = system.Root.StopFuture(pid).Wait()
	})
}

func TestReplay_BeforeTheMailboxInOrderWithSenders(t *testing.T) {
	loading(t, nil, func(t *testing.T, root *actor.RootContext, pid *actor.PID, out <-chan []int) {
		var asked []result
		for i := range 3 {
			asked = append(asked, root.RequestFuture(pid, i, time.Minute).Result)
		}
		full, err := root.RequestFuture(pid, 3, time.Minute).Result()
		require.NoError(t, err)
		require.Equal(t, errFull, full)
		filled := make(chan struct{}) // the mailbox has ready, 4 and tell before the actor goes on
		root.Send(pid, &hold{filled})
		root.Send(pid, &ready{})
		root.Send(pid, 4)
		root.Send(pid, &tell{})
		close(filled)
		require.Equal(t, []int{0, 1, 2, 4}, <-out)
		for i, result := range asked {
			n, err := result()
			require.NoError(t, err)
			require.Equal(t, i+1, n)
		}
	})
}

func TestReplay_PushedAgainWaitsForTheNext(t *testing.T) {
	loading(t, map[int]bool{1: true}, func(t *testing.T, root *actor.RootContext, pid *actor.PID,
		out <-chan []int) {
		for i := range 3 {
			root.Send(pid, i)
		}
		root.Send(pid, &ready{})
		root.Send(pid, &tell{})
		require.Equal(t, []int{0, 2}, <-out)
		root.Send(pid, &ready{})
		root.Send(pid, &tell{})
		require.Equal(t, []int{0, 2, 1}, <-out)
	})
}

// answers returns the answers to requests, or the error of a request that went to the dead letters.
func answers(asked []result) (out []any) {
	for _, result := range asked {
		a, err := result()
		if err != nil {
			a = err
		}
		out = append(out, a)
	}
	return out
}

// result waits for the answer to a request. It is not a future: the supported versions of
// Proto.Actor spell the type of one in two ways.
type result = func() (any, error)

func ask(root *actor.RootContext, pid *actor.PID, numbers ...int) (asked []result) {
	for _, n := range numbers {
		asked = append(asked, root.RequestFuture(pid, n, time.Minute).Result)
	}
	return asked
}

func TestDiscard_StoppedActorAnswersAtOnce(t *testing.T) {
	loading(t, nil, func(t *testing.T, root *actor.RootContext, pid *actor.PID, out <-chan []int) {
		began := time.Now()
		asked := ask(root, pid, 1, 2)
		root.Send(pid, &tell{})
		require.Empty(t, <-out) // both are in the stash; Stop would overtake them in the mailbox
		root.Stop(pid)
		require.Equal(t, []any{actor.ErrDeadLetter, actor.ErrDeadLetter}, answers(asked))
		require.Zero(t, time.Since(began), "not after the time-out of the requests")
	})
}

func TestDiscard_RestartedActorKeepsNothing(t *testing.T) {
	loading(t, nil, func(t *testing.T, root *actor.RootContext, pid *actor.PID, out <-chan []int) {
		asked := ask(root, pid, 1, -1, 2)
		// 1 is answered, -1 is lost in the panic, 2 goes to the dead letters
		root.Send(pid, &ready{})
		require.Equal(t, []any{1, actor.ErrTimeout, actor.ErrDeadLetter}, answers(asked))
		root.Send(pid, &ready{})
		root.Send(pid, &tell{})
		require.Empty(t, <-out)
	})
}

func TestDiscard_DuringReplayEndsIt(t *testing.T) {
	loading(t, nil, func(t *testing.T, root *actor.RootContext, pid *actor.PID, _ <-chan []int) {
		asked := ask(root, pid, 1, -2, 2)
		root.Send(pid, &ready{})
		require.Equal(t, []any{1, 2, actor.ErrDeadLetter}, answers(asked))
	})
}
