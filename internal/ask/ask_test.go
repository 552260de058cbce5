package ask_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type question struct{ answers int }

func spawn(system *actor.ActorSystem, after time.Duration) *actor.PID {
	return system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if q, ok := ctx.Message().(*question); ok {
			to := ctx.Sender()
			answer := func() {
				for i := range q.answers {
					system.Root.Send(to, fmt.Sprint("answer ", i))
				}
			}
			if after == 0 {
				answer()
			} else {
				time.AfterFunc(after, answer)
			}
		}
	}))
}

// registered returns the number of processes of system.
func registered(system *actor.ActorSystem) (n int) {
	for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += bucket.Count()
	}
	return n
}

func TestFirstAnswerCountsAndTheOthersAreDropped(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		pid := spawn(system, 0)
		before := registered(system)
		got, err := ask.Request(t.Context(), system, pid, &question{3})
		require.NoError(t, err)
		require.Equal(t, "answer 0", got)
		require.Equal(t, before, registered(system))
	})
}

func TestContextEndsTheWaitAndALateAnswerIsHarmless(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		pid := spawn(system, 2*time.Second)
		before := registered(system)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := ask.Request(ctx, system, pid, &question{2})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, before, registered(system))
		time.Sleep(2 * time.Second)
	})
}

func TestTheCauseOfTheContextIsReturned(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		pid := spawn(system, 0)
		cause := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(cause)
		}()
		_, err := ask.Request(ctx, system, pid, &question{})
		require.ErrorIs(t, err, cause)
		_, err = ask.Request(ctx, system, pid, &question{1})
		require.ErrorIs(t, err, cause, "an ended context sends nothing")
	})
}

func TestNobodyThereIsADeadLetter(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		before := registered(system)
		_, err := ask.Request(t.Context(), system, system.NewLocalPID("nobody"), &question{})
		require.ErrorIs(t, err, ask.ErrDeadLetter)
		_, err = ask.Request(t.Context(), system, nil, &question{})
		require.ErrorIs(t, err, ask.ErrDeadLetter)
		require.Equal(t, before, registered(system))
	})
}

func TestManyAsksAtOnceLeaveNothingBehind(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		pid := spawn(system, time.Millisecond)
		before := registered(system)
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				// Some contexts end exactly when the answer arrives.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3)*time.Millisecond)
				defer cancel()
				_, _ = ask.Request(ctx, system, pid, &question{2})
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Equal(t, before, registered(system))
	})
}

func BenchmarkRequest(b *testing.B) {
	system := simnet.NewSystem("")
	pid := echo(system)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ask.Request(context.Background(), system, pid, &question{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequestFuture(b *testing.B) {
	system := simnet.NewSystem("")
	pid := echo(system)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := system.Root.RequestFuture(pid, &question{}, time.Second).Result(); err != nil {
			b.Fatal(err)
		}
	}
}

func echo(system *actor.ActorSystem) *actor.PID {
	return system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if q, ok := ctx.Message().(*question); ok {
			ctx.Respond(q)
		}
	}))
}

// TestNames_AreNeverUsedAgain checks that a name is long and random: a process that restarts at the
// same address must not take answers to its predecessor.
func TestNames_AreNeverUsedAgain(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		seen := map[string]bool{}
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*question); ok {
				seen[ctx.Sender().Id] = true
				ctx.Respond(true)
			}
		}))
		for range 100 {
			_, err := ask.Request(t.Context(), system, pid, &question{})
			require.NoError(t, err)
		}
		require.Len(t, seen, 100)
		for id := range seen {
			require.Len(t, id, len("$ask-")+26, "130 bits in base 32")
		}
	})
}

// As does not panic on a reply that is nil, and returns nil replies of the type itself.
func TestAs_ANilReply(t *testing.T) {
	text, err := ask.As[*wrapperspb.StringValue]("pkg", nil, nil)
	require.EqualError(t, err, "pkg: the message was handled, but the reply is a <nil>, not a "+
		"*wrapperspb.StringValue")
	require.Nil(t, text)
	_, err = ask.As[proto.Message]("pkg", nil, nil)
	require.ErrorContains(t, err, "the reply is a <nil>, not a protoreflect.ProtoMessage")
	text, err = ask.As[*wrapperspb.StringValue]("pkg", (*wrapperspb.StringValue)(nil), nil)
	require.NoError(t, err)
	require.Empty(t, text.GetValue())
}

// As returns no reply beside an error.
func TestAs_AnErrorIsReturnedUnchanged(t *testing.T) {
	text, err := ask.As[*wrapperspb.StringValue]("pkg", wrapperspb.String("x"), io.EOF)
	require.Equal(t, io.EOF, err)
	require.Nil(t, text)
}
