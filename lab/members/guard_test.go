package members

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
)

// TestHostilePeer sends a member messages that crash an unguarded one or stop its actors.
func TestHostilePeer(t *testing.T) {
	p := launch(t, specs(t, 1)[0])
	conn := stranger.Dial(t, p.started())
	self := stranger.Listen(t, nil)

	hello := func(text string) *remote.MessageBatch {
		return stranger.Batch("nonhost", "watcher", wrapperspb.String(text))
	}
	// send sends on a new stream and returns how the stream ended, or nil if it was still open when
	// the next message on it had arrived.
	n := 0
	send := func(b *remote.MessageBatch) error {
		stream, err := stranger.Stream(t, conn)
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(stranger.Introduce(self)))
		require.NoError(t, stream.RecvMsg(&remote.RemoteMessage{}))
		require.NoError(t, stream.SendMsg(stranger.Send(b)))
		n++
		text := fmt.Sprint("after ", n)
		_ = stream.SendMsg(stranger.Send(hello(text)))
		ended := make(chan error, 1)
		go func() { ended <- stream.RecvMsg(&remote.RemoteMessage{}) }()
		for {
			select {
			case err := <-ended:
				return err
			case <-time.After(5 * time.Millisecond):
			}
			for _, r := range p.reports("got") {
				if r.Text == text {
					return nil
				}
			}
		}
	}

	client := remote.NewRemotingClient(conn)
	_, err := client.ListProcesses(t.Context(), &remote.ListProcessesRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = client.GetProcessDiagnostics(t.Context(), &remote.GetProcessDiagnosticsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))

	for name, b := range map[string]*remote.MessageBatch{
		"target": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.Envelopes[0].Target = 7
		}),
		"negative target": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.Envelopes[0].Target = -1
		}),
		"type": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.Envelopes[0].TypeId = 7
		}),
		"sender": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.Envelopes[0].Sender = 7
		}),
		"serializer": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.Envelopes[0].SerializerId = 77
		}),
	} {
		require.Equal(t, codes.InvalidArgument, status.Code(send(b)), name)
	}
	for name, b := range map[string]*remote.MessageBatch{
		"unknown type": stranger.Changed(hello("x"), func(b *remote.MessageBatch) {
			b.TypeNames[0] = "no.such.Type"
		}),
		"stop":          stranger.Batch("nonhost", "watcher", &actor.Stop{}),
		"poison":        stranger.Batch("nonhost", "watcher", &actor.PoisonPill{}),
		"empty watch":   stranger.Batch("nonhost", "watcher", &actor.Watch{}),
		"empty unwatch": stranger.Batch("nonhost", "watcher", &actor.Unwatch{}),
		"terminated":    stranger.Batch("nonhost", "watcher", &actor.Terminated{}),
	} {
		require.NoError(t, send(b), "%s: only the message is refused, not those after it", name)
	}
	require.NoError(t, send(hello("still alive")))
	require.Empty(t, p.reports("watcher stopped"))
	require.Empty(t, p.reports("watcher restarted"))
	require.Zero(t, p.stop())
}
