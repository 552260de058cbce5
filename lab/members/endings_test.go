package members

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/node"
)

// receiver accepts streams of remoting and counts what they carry.
type receiver struct {
	remote.UnimplementedRemotingServer
	arrived atomic.Int64
}

func (r *receiver) Receive(s remote.Remoting_ReceiveServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		r.arrived.Add(int64(len(m.GetMessageBatch().GetEnvelopes())))
		if m.GetConnectRequest() == nil {
			continue
		}
		err = s.Send(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectResponse{
			ConnectResponse: &remote.ConnectResponse{}}})
		if err != nil {
			return err
		}
	}
}

// One end of a connection ends one connection, and messages to the address arrive again.
// Proto.Actor alone reports the end of the connection that it has closed, which ends the next one,
// and so on as long as messages are sent: four to fifty times in the half second of this test.
//
// The test runs in a process of its own: remoting sets the logger of gRPC, which races with the end
// of earlier tests.
func TestEndings_OneEndEndsOneConnection(t *testing.T) {
	const inChild = "CONCORD_ENDINGS_TEST"
	if os.Getenv(inChild) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	rc, err := node.Remote(node.Config{})
	require.NoError(t, err)
	system := actor.NewActorSystem(func(c *actor.Config) {
		c.DeadLetterThrottleInterval = time.Millisecond // its timer would outlive the test
		c.LoggerFactory = func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		}
	})
	c := cluster.New(system, node.Cluster("endings", make(alone, 1), rc))
	require.NoError(t, node.Start(t.Context(), c))
	defer func() { require.NoError(t, node.Shutdown(context.Background(), c)) }()
	var ended atomic.Int64
	system.EventStream.Subscribe(func(e any) {
		if _, ok := e.(*remote.EndpointTerminatedEvent); ok {
			ended.Add(1)
		}
	})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	there, server := &receiver{}, grpc.NewServer()
	remote.RegisterRemotingServer(server, there)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Stop()
		require.NoError(t, <-served)
	}()
	to := actor.NewPID(l.Addr().String(), "any")
	arrive := func(more int64) {
		t.Helper()
		n := there.arrived.Load() + more
		require.Eventually(t, func() bool {
			system.Root.Send(to, &emptypb.Empty{})
			return there.arrived.Load() >= n
		}, 10*time.Second, time.Millisecond)
	}
	arrive(10)
	system.EventStream.Publish(&remote.EndpointTerminatedEvent{Address: to.Address})
	arrive(500)
	require.EqualValues(t, 1, ended.Load())

	server.Stop()
	require.Eventually(t, func() bool { return ended.Load() == 2 }, 10*time.Second,
		time.Millisecond, "the end of a connection that was not given up")
}
