package etcd

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/internal/silence/silencegrpc"
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
	c.DialOptions = append(silencegrpc.Options(), c.DialOptions...)
	return clientv3.New(c)
}
