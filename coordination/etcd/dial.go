package etcd

import (
	"context"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/concord-go/concord/coordination/internal/silence"
)

// Dial is clientv3.New with a dialer of its own: connections that have fallen silent are closed,
// and so replaced. Such a connection is open, but nothing comes back: a server stands still, or a
// proxy between has forgotten it. The keepalive of gRPC notices that after 13 seconds at the
// earliest, when the leases of a session with the default TTL have been lost. The keepalive is set
// too, unless the configuration has one. Dial connects directly, whatever proxies the environment
// names.
func Dial(c clientv3.Config) (*clientv3.Client, error) {
	if c.DialKeepAliveTime == 0 {
		c.DialKeepAliveTime, c.DialKeepAliveTimeout = 10*time.Second, 3*time.Second
	}
	l := links{&silence.Links{}}
	c.DialOptions = append([]grpc.DialOption{grpc.WithContextDialer(l.dial),
		grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream)},
		c.DialOptions...)
	return clientv3.New(c)
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

// stream is for the keepalives of etcd leases, whose streams end with the answer. Those of watches
// have no deadline.
func (l links) stream(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string,
	begin grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	context.AfterFunc(ctx, l.Watch(ctx))
	return begin(ctx, d, c, method, o...)
}
