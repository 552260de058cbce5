package fence_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/memory"
)

// grants returns the grants of two sessions that hold a lease one after the other. The first one is
// lost without its knowledge.
func grants(t testing.TB) (first, second *coordination.Grant) {
	store := memory.New()
	hold := func() *coordination.Grant {
		s, err := coordination.Open(store, coordination.Config{})
		require.NoError(t, err)
		if first != nil {
			require.NoError(t, s.Lease("ledger").ForceRelease(t.Context(), first.Token()))
		}
		g, err := s.Lease("ledger").TryAcquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = g.Release(context.Background())
			_ = s.Close(context.Background())
		})
		return g
	}
	first = hold()
	return first, hold()
}

// header is a header as another program may send it.
type header map[string]string

func (h header) Get(key string) string    { return h[key] }
func (h header) Length() int              { return len(h) }
func (h header) ToMap() map[string]string { return h }
func (h header) Keys() (keys []string) {
	for k := range h {
		keys = append(keys, k)
	}
	return keys
}

func TestTokenOfMessage_AcceptsOnlyWhatEnvelopeWrites(t *testing.T) {
	g, _ := grants(t)
	e, err := fence.Envelope(g, "write")
	require.NoError(t, err)
	require.Equal(t, "write", e.Message)
	token, err := fence.TokenOfMessage(e.Header)
	require.NoError(t, err)
	require.Equal(t, g.Token(), token)

	for _, h := range []actor.ReadonlyMessageHeader{nil, actor.UnwrapEnvelopeHeader("bare"),
		actor.UnwrapEnvelopeHeader(&actor.MessageEnvelope{}), header{}, header{"Other": "1"},
		header{fence.Header: ""}, header{fence.Header: "0"}, header{fence.Header: "-1"},
		header{fence.Header: "01"}, header{fence.Header: "9223372036854775808"}} {
		_, err := fence.TokenOfMessage(h)
		require.ErrorIs(t, err, fence.ErrInvalid, "%v", h)
	}
}

func TestEnvelope_KeepsSenderAndHeadersOfAnEnvelope(t *testing.T) {
	g, _ := grants(t)
	sender := actor.NewPID("a", "b")
	in := &actor.MessageEnvelope{Message: "write", Sender: sender}
	in.SetHeader("Trace", "7")
	in.SetHeader(fence.Header, "99")
	out, err := fence.Envelope(g, in)
	require.NoError(t, err)
	require.Equal(t, "write", out.Message)
	require.Equal(t, sender, out.Sender)
	require.Equal(t, map[string]string{"Trace": "7", fence.Header: fmt.Sprint(g.Token())},
		out.Header.ToMap())
	require.Equal(t, "99", in.GetHeader(fence.Header), "the argument is unchanged")
}

func TestEnvelope_UnderALostLeaseThereIsNone(t *testing.T) {
	_, err := fence.Envelope(nil, "write")
	require.ErrorIs(t, err, fence.ErrInvalid)
	_, g := grants(t)
	require.NoError(t, g.Release(t.Context()))
	_, err = fence.Envelope(g, "write")
	require.ErrorIs(t, err, coordination.ErrReleased)
}

// An actor rejects the message of a former holder that was sent before its loss, and arrives after
// a message of the next holder.
func TestEnvelope_AnActorRejectsAFormerHolder(t *testing.T) {
	first, second := grants(t)
	early, err := fence.Envelope(first, "of the first holder")
	require.NoError(t, err)
	late, err := fence.Envelope(second, "of the second")
	require.NoError(t, err)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	t.Cleanup(system.Shutdown)
	var guard fence.Guard
	answers := make(chan error)
	ledger := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); !ok {
			return
		}
		token, err := fence.TokenOfMessage(ctx.MessageHeader())
		if err == nil {
			err = guard.Do(t.Context(), "ledger", token, nothing)
		}
		answers <- err
	}))
	system.Root.Send(ledger, late)
	require.NoError(t, <-answers)
	system.Root.Send(ledger, early)
	require.ErrorIs(t, <-answers, fence.ErrStale)
	system.Root.Send(ledger, "without a token")
	require.ErrorIs(t, <-answers, fence.ErrInvalid)
	require.NoError(t, system.Root.PoisonFuture(ledger).Wait())
}
