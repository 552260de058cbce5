package node

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// A member closes a connection that has had no stream for maxIdle, and none that has one.
func TestServer_ClosesAnIdleConnection(t *testing.T) {
	for name, streams := range map[string]bool{"idle": false, "with a stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := bufconn.Listen(1 << 16)
				server := grpc.NewServer(append(serverOptions(Config{MaxMessage: 1 << 20}),
					grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
						<-s.Context().Done()
						return s.Context().Err()
					}))...)
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(listener) }()
				client, err := grpc.NewClient("passthrough:member",
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
						return listener.DialContext(ctx)
					}))
				require.NoError(t, err)
				client.Connect()
				for s := client.GetState(); s != connectivity.Ready; s = client.GetState() {
					require.True(t, client.WaitForStateChange(t.Context(), s))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*maxIdle)
				defer cancel()
				if streams {
					_, err := client.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true,
						ServerStreams: true}, "/any/Stream")
					require.NoError(t, err)
				}
				begun := time.Now()
				closed := client.WaitForStateChange(ctx, connectivity.Ready)
				require.NotEqual(t, streams, closed)
				if closed {
					require.Equal(t, maxIdle, time.Since(begun).Round(time.Second))
				}
				require.NoError(t, client.Close())
				server.Stop()
				require.NoError(t, <-ended)
			})
		})
	}
}
