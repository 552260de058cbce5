package node_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/node"
)

// Proto.Actor forgets connections whose stream could not be opened or ended before it was answered.
func TestDial_UnansweredConnectionsAreClosed(t *testing.T) {
	rc, err := node.Remote(node.Config{})
	require.NoError(t, err)
	rc.DialOptions = append(rc.DialOptions, grpc.WithContextDialer(
		func(ctx context.Context, to string) (net.Conn, error) {
			return memnet.Dial(ctx, "tcp", to)
		}))
	l := memnet.Listen()
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
	require.Equal(t, connectivity.Shutdown, cc.GetState())
	hangsUp.Stop()
	require.NoError(t, <-served)
}

func TestDial_ConnectionsToNobodyAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rc, err := node.Remote(node.Config{})
		require.NoError(t, err)
		rc.DialOptions = append(rc.DialOptions, grpc.WithContextDialer(
			func(context.Context, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}))
		cc, err := grpc.NewClient("127.0.0.1:1", rc.DialOptions...)
		require.NoError(t, err)
		_, err = remote.NewRemotingClient(cc).Receive(t.Context())
		require.Error(t, err)
		require.Equal(t, connectivity.Shutdown, cc.GetState())
	})
}
