package etcd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// ErrInvalid is matched by every error of Config.Validate.
var ErrInvalid = errors.New("etcd: invalid configuration")

// Config of a provider. Zero fields take their defaults.
type Config struct {
	// Client is what each life makes its client of. Endpoints are required. Its logger is silent unless
	// one is set, since the provider reports what fails.
	Client clientv3.Config `yaml:"-"`
	// Base of the keys. Default "/protoactor", as that of Proto.Actor's provider.
	Base string `yaml:"base"`
	// TTL is how long a member stays listed that does not reach etcd, in whole seconds, 2s to 10m.
	// Default 5s. Raising it makes pauses up to this length harmless, and takes as long to notice others.
	TTL time.Duration `yaml:"ttl"`
}

const (
	minTTL       = 2 * time.Second
	maxTTL       = 10 * time.Minute
	startTimeout = 10 * time.Second
	callTimeout  = 3 * time.Second
	retry        = time.Second
	lookPart     = 10               // of a TTL is how often a session looks whether the process was paused
	pingAfter    = 10 * time.Second // gRPC takes nothing shorter
)

func (c Config) withDefaults() Config {
	if c.Base == "" {
		c.Base = "/protoactor"
	}
	if c.TTL == 0 {
		c.TTL = 5 * time.Second
	}
	if c.Client.Logger == nil {
		c.Client.Logger = zap.NewNop()
	}
	// Without keepalive a connection that lived through a partition waits for TCP, which repeats what was lost ever
	// more rarely. It also sets how long the kernel waits for an acknowledgement, which a cut shows before any ping.
	if c.Client.DialKeepAliveTime == 0 {
		c.Client.DialKeepAliveTime, c.Client.DialKeepAliveTimeout = pingAfter, callTimeout
	}
	// gRPC's own back-off grows to two minutes, and a restarted etcd would be found as late.
	soon := backoff.DefaultConfig
	soon.MaxDelay = retry
	c.Client.DialOptions = append([]grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: callTimeout}),
	}, c.Client.DialOptions...)
	return c
}

// Validate returns all problems at once; each matches ErrInvalid.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if len(c.Client.Endpoints) == 0 {
		bad("Client.Endpoints is empty")
	}
	if strings.HasSuffix(c.Base, "/") {
		bad("Base (%.80q) must not end with \"/\"", c.Base)
	}
	if c.TTL < minTTL || c.TTL > maxTTL || c.TTL%time.Second != 0 {
		bad("TTL (%v) must be whole seconds from %v to %v", c.TTL, minTTL, maxTTL)
	}
	return errors.Join(errs...)
}

// New returns a function that makes a provider for each life of a member. The function returns the
// error of Config.Validate. The provider's StartMember fails when etcd does not answer within ten
// seconds, or the cluster's name has a "/".
func New(c Config) func() (cluster.ClusterProvider, error) {
	return func() (cluster.ClusterProvider, error) {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		c := c.withDefaults()
		return roster.New(roster.Config{
			Open:         func(self roster.Self) (roster.Directory, error) { return open(c, self) },
			StartTimeout: startTimeout,
			Grace:        c.TTL + 2*retry,
			Retry:        retry,
		}), nil
	}
}
