package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/concord-go/concord/internal/memnet"
)

func newConn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:nobody",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	return cc
}

// After a failed attempt the next one waits until the peer can be reached, or the window ends. In
// other calls there is no next one.
func TestConnector_WaitsForAPeerThatRefuses(t *testing.T) {
	t.Parallel()
	refused := status.Error(codes.Unavailable, "refused")
	for name, c := range map[string]struct {
		connector
		method string
		want   []int // options of each call
	}{
		"remoting": {connector{0, &endings{}}, remotingMethod, []int{0, 1}},
		"other":    {connector{time.Hour, &endings{}}, "/other/Method", []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			cc := newConn(t)
			_, err := c.open(t.Context(), &grpc.StreamDesc{}, cc, c.method,
				func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
					opts ...grpc.CallOption) (grpc.ClientStream, error) {
					got = append(got, len(opts))
					if len(opts) > 0 {
						<-ctx.Done() // the window
					}
					return nil, refused
				})
			require.ErrorIs(t, err, refused)
			require.Equal(t, c.want, got)
			require.Equal(t, connectivity.Shutdown, cc.GetState())
		})
	}
}

// The peer cannot be reached at first. The same call opens the stream once it can be: if it failed
// instead, Proto.Actor would pause for two seconds.
func TestConnector_APeerIsReachedAsSoonAsItCanBe(t *testing.T) {
	failed := make(chan struct{}, 100)
	l := memnet.Listen()
	var whole atomic.Bool
	cc, err := grpc.NewClient(l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: redial, MinConnectTimeout: dialTimeout}),
		grpc.WithChainStreamInterceptor(connector{dialWindow, &endings{}}.open),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if !whole.Load() {
				failed <- struct{}{}
				return nil, errors.New("the network is broken")
			}
			return memnet.Dial(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	defer cc.Close()
	peer := grpc.NewServer()
	remote.RegisterRemotingServer(peer, &remote.UnimplementedRemotingServer{})
	served := make(chan error, 1)
	go func() { served <- peer.Serve(l) }()
	opened := make(chan error, 1)
	go func() {
		_, err := remote.NewRemotingClient(cc).Receive(t.Context())
		opened <- err
	}()
	for range 2 { // the second attempt shows that the first one has failed
		select {
		case <-failed:
		case err := <-opened:
			t.Fatal("the call has ended after one attempt: ", err)
		}
	}
	whole.Store(true)
	require.NoError(t, <-opened)
	require.NoError(t, cc.Close())
	peer.Stop()
	require.NoError(t, <-served)
}

// A batch is sent in pieces of at most pieceSize bytes, or one message; their order stays.
func TestPieces_OfALargeBatch(t *testing.T) {
	b := &remote.MessageBatch{TypeNames: []string{"t"}}
	for _, size := range []int{pieceSize - 1, 2, 2 * pieceSize, 1, pieceSize - 1, 1} {
		b.Envelopes = append(b.Envelopes, &remote.MessageEnvelope{MessageData: make([]byte, size)})
	}
	m := &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: b}}
	var sizes []int
	var all []*remote.MessageEnvelope
	for p := range pieces(m) {
		got := p.(*remote.RemoteMessage).GetMessageBatch()
		require.Equal(t, b.TypeNames, got.TypeNames)
		sizes = append(sizes, len(got.Envelopes))
		all = append(all, got.Envelopes...)
	}
	require.Equal(t, []int{1, 1, 1, 2, 1}, sizes)
	require.Equal(t, b.Envelopes, all)

	b.Envelopes = b.Envelopes[3:5]
	for _, whole := range []any{m, &remote.RemoteMessage{}, "another message"} {
		require.Equal(t, []any{whole}, slices.Collect(pieces(whole)))
	}
}
