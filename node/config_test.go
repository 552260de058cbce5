package node_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/concord-go/concord/node"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

func TestValidateReportsEveryProblem(t *testing.T) {
	_, err := node.Remote(node.Config{
		Host: "0.0.0.0", Port: 70000, MaxMessage: 5, Roles: []string{"a", "a", "", "b c"},
		AppVersion: "1.0+x", MaxRate: 9999,
	})
	require.ErrorIs(t, err, node.ErrInvalid)
	for _, part := range []string{"Port (70000)", "MaxMessage (5)", "Advertised must be set",
		"PlaintextUnsafe",
		`"a" is listed twice`, `Roles: ""`, `Roles: "b c"`, "MaxRate (9999) must be 0 or from 10000",
		`AppVersion: application version "1.0+x" must`} {
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, 9, strings.Count(err.Error(), node.ErrInvalid.Error()))
}

func TestPlaintextStaysOnLoopback(t *testing.T) {
	for host, ok := range map[string]bool{
		"": true, "127.0.0.1": true, "127.3.2.1": true, "::1": true, "localhost": true,
		"10.0.0.1": false, "example.org": false, "::": false,
	} {
		_, err := node.Remote(node.Config{Host: host, Advertised: "localhost:1"})
		require.Equal(t, ok, err == nil, host)
		if host != "" && host != "::" {
			_, err = node.Remote(node.Config{Advertised: net.JoinHostPort(host, "1")})
			require.Equal(t, ok, err == nil, "advertised: %s", host)
		}
		_, err = node.Remote(node.Config{Host: host, Advertised: "x:1", PlaintextUnsafe: true})
		require.NoError(t, err)
	}
}

func TestRemoteKeepsTheGuardWhenOptionsAreAdded(t *testing.T) {
	plain, err := node.Remote(node.Config{})
	require.NoError(t, err)
	rc, err := node.Remote(node.Config{Advertised: "me:7", PlaintextUnsafe: true},
		remote.WithServerOptions(grpc.MaxConcurrentStreams(3)),
		remote.WithDialOptions(grpc.WithUserAgent("x")), remote.WithEndpointWriterBatchSize(7))
	require.NoError(t, err)
	require.Len(t, rc.ServerOptions, len(plain.ServerOptions)+1)
	require.Len(t, rc.DialOptions, len(plain.DialOptions)+1)
	require.Equal(t, 7, rc.EndpointWriterBatchSize)
	require.Equal(t, 200, plain.EndpointWriterBatchSize)
	require.Equal(t, "me:7", rc.AdvertisedHost)
	require.Equal(t, "127.0.0.1", rc.Host)
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	require.ErrorIs(t, node.Start(t.Context(), nil), node.ErrInvalid)
	rc, err := node.Remote(node.Config{})
	require.NoError(t, err)
	c := cluster.New(actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		})), node.Cluster("", nil, rc, node.Roles("no good"), node.AppVersion("new"),
		node.AppVersion("")))
	err = node.Start(t.Context(), c)
	require.ErrorIs(t, err, node.ErrInvalid)
	for _, part := range []string{"cluster name", "no provider", `Roles: "no good"`,
		`application version "new"`} {
		require.ErrorContains(t, err, part)
	}
	require.NoError(t, node.Shutdown(t.Context(), c), "of what was never started")
	require.NoError(t, node.Shutdown(t.Context(), c))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, node.Start(ctx, c), node.ErrInvalid)
}
