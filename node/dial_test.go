package node_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/concord-go/concord/node"
)

// Proto.Actor forgets connections whose stream could not be opened or ended before it was answered.
func TestDial_FailedConnectionsAreClosed(t *testing.T) {
	rc, err := node.Remote(node.Config{})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()

	hangsUp := grpc.NewServer()
	remote.RegisterRemotingServer(hangsUp, &remote.UnimplementedRemotingServer{})
	served := make(chan error, 1)
	go func() { served <- hangsUp.Serve(l) }()
	cc, err := grpc.NewClient(address, rc.DialOptions...)
	require.NoError(t, err)
	stream, err := remote.NewRemotingClient(cc).Receive(t.Context())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Error(t, err)
	require.Equal(t, connectivity.Shutdown, cc.GetState(), "not answered")

	hangsUp.Stop()
	require.NoError(t, <-served)
	cc, err = grpc.NewClient(address, rc.DialOptions...)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = remote.NewRemotingClient(cc).Receive(ctx)
	require.Error(t, err)
	require.Equal(t, connectivity.Shutdown, cc.GetState(), "nobody listens")
}

// The peer cannot be reached at first. The same call opens the stream once it can be: if it failed
// instead, Proto.Actor would pause for two seconds.
func TestDial_APeerIsReachedAsSoonAsItCanBe(t *testing.T) {
	failed := make(chan struct{}, 100)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var whole atomic.Bool
	rc, err := node.Remote(node.Config{}, remote.WithDialOptions(grpc.WithContextDialer(
		func(ctx context.Context, address string) (net.Conn, error) {
			if !whole.Load() {
				failed <- struct{}{}
				return nil, errors.New("the network is broken")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		})))
	require.NoError(t, err)
	peer := grpc.NewServer()
	remote.RegisterRemotingServer(peer, &remote.UnimplementedRemotingServer{})
	served := make(chan error, 1)
	go func() { served <- peer.Serve(l) }()
	cc, err := grpc.NewClient(l.Addr().String(), rc.DialOptions...)
	require.NoError(t, err)
	defer cc.Close()
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
