// Package silencegrpc closes connections of gRPC clients that have fallen silent.
package silencegrpc

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc"

	"github.com/concord-go/concord/internal/silence"
)

// Options returns the options of one client. It connects directly, whatever proxies the environment
// names. Calls with a deadline, or of silence.Patiently, notice that a connection is silent, and
// streams without one do not.
func Options() []grpc.DialOption {
	l := links{&silence.Links{}}
	return []grpc.DialOption{grpc.WithContextDialer(l.dial),
		grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream)}
}

type links struct{ *silence.Links }

func (l links) dial(ctx context.Context, address string) (net.Conn, error) {
	if path, is := strings.CutPrefix(address, "unix:"); is {
		return l.DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	return l.DialContext(ctx, "tcp", address)
}

func (l links) unary(ctx context.Context, method string, request, reply any, c *grpc.ClientConn,
	invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	defer l.Watch(ctx)()
	return invoke(ctx, method, request, reply, c, o...)
}

// stream is for streams that end with their answer, as the keepalive of an etcd lease. Those of
// watches have no deadline.
func (l links) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string,
	begin grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	context.AfterFunc(ctx, l.Watch(ctx))
	return begin(ctx, d, c, method, o...)
}
