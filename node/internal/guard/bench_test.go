package guard

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
)

// sink counts batches.
type sink struct {
	remote.UnimplementedRemotingServer
	n *atomic.Int64
}

func (s sink) Receive(stream remote.Remoting_ReceiveServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			if err := stream.Send(&remote.RemoteMessage{
				MessageType: &remote.RemoteMessage_ConnectResponse{
					ConnectResponse: &remote.ConnectResponse{},
				}}); err != nil {
				return err
			}
			continue
		}
		s.n.Add(1)
	}
}

// BenchmarkBatches sends batches of 200 messages of 100 bytes with senders, as Proto.Actor does
// under load.
func BenchmarkBatches(b *testing.B) {
	for _, mode := range []string{"bare", "guard", "secret", "tls"} {
		b.Run("mode="+mode, func(b *testing.B) { benchBatches(b, mode) })
	}
}

// bindPort is bind with a port of the machine: what the network costs counts.
func bindPort(b *testing.B) *end {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	return &end{t: b, lis: lis, address: lis.Addr().String(), process: &Process{}}
}

func benchBatches(b *testing.B, mode string) {
	var n atomic.Int64
	from, to := bindPort(b), bindPort(b)
	var options []grpc.DialOption
	var server []grpc.ServerOption
	if mode == "bare" {
		options = []grpc.DialOption{plain}
	} else {
		p := quiet()
		p.see(map[string]string{"a": from.address}) // a stranger may not send so much at once
		for _, e := range []*end{from, to} {
			cfg := Config{}
			switch mode {
			case "secret":
				cfg.Secret = secretFile(b, ours)
			case "tls":
				paper := newPaper(b)
				if from.guard != nil {
					continue // both use one certificate
				}
				cfg.Files = paper.files(paper.authority("bench"), here)
				g, err := New(cfg, p)
				require.NoError(b, err)
				from.guard, to.guard = g, g
				continue
			}
			g, err := New(cfg, p)
			require.NoError(b, err)
			e.guard = g
		}
		options, server = from.guard.DialOptions(), to.guard.ServerOptions()
		from.guard.CallWith(from.guard.DialOptions())
		to.guard.CallWith(to.guard.DialOptions())
		s := grpc.NewServer(from.guard.ServerOptions()...)
		go func() { _ = s.Serve(from.lis) }()
		b.Cleanup(s.Stop)
	}
	s := grpc.NewServer(server...)
	remote.RegisterRemotingServer(s, sink{n: &n})
	go func() { _ = s.Serve(to.lis) }()
	b.Cleanup(s.Stop)
	stream, err := open(b, to, from.address, append(options, grpc.WithContextDialer(
		func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}))...)
	require.NoError(b, err)

	full := stranger.Batch(to.address, "x", wrapperspb.String(string(make([]byte, 100))))
	full.Senders = []*actor.PID{actor.NewPID(from.address, "y")}
	full.Envelopes[0].Sender = 1
	for range 199 {
		full.Envelopes = append(full.Envelopes, full.Envelopes[0])
	}
	b.ReportAllocs()
	for b.Loop() {
		if stream.SendMsg(stranger.Send(full)) != nil {
			b.Fatal(stream.ended())
		}
	}
	for want := int64(b.N); n.Load() < want; {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(200*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
