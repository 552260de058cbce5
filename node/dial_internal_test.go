package node

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// hanging is a streamer that waits for a peer that cannot be reached.
func hanging(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestConnector_GivesUpAfterItsWindow(t *testing.T) {
	t.Parallel()
	cc, err := grpc.NewClient("passthrough:nobody",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	_, err = connector{0}.open(context.Background(), &grpc.StreamDesc{}, cc, remotingMethod, hanging)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, connectivity.Shutdown, cc.GetState())
}

// The guard calls peers back to prove their addresses. Such a call fails with the first attempt.
func TestConnector_WaitsForStreamsOfRemotingOnly(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{remotingMethod: 1, "/other/Method": 0} {
		cc, err := grpc.NewClient("passthrough:nobody",
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		_, err = connector{dialWindow}.open(t.Context(), &grpc.StreamDesc{}, cc, method,
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
				opts ...grpc.CallOption) (grpc.ClientStream, error) {
				require.Len(t, opts, want, method)
				return nil, context.Canceled
			})
		require.Error(t, err)
	}
}
