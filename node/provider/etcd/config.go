package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/concord-go/concord/internal/silence/silencegrpc"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// errInvalid is matched by every error of an invalid Config.
var errInvalid = errors.New("etcd: invalid configuration")

// Config configures a provider. Zero fields take their defaults.
type Config struct {
	// Client configures the client of each incarnation. Endpoints are required. The client does not
	// log unless Logger is set, since the provider reports failures.
	Client clientv3.Config `yaml:"-"`
	// Base is the prefix of the keys. Default "/protoactor", the same as Proto.Actor's provider.
	Base string `yaml:"base"`
	// TTL is how long a member that cannot reach etcd stays listed: whole seconds, 2s to 10m.
	// Default 5s. Raising it tolerates longer pauses, and delays the detection of permanent
	// failures.
	TTL time.Duration `yaml:"ttl"`
}

const (
	minTTL       = 2 * time.Second
	maxTTL       = 10 * time.Minute
	startTimeout = 10 * time.Second
	callTimeout  = 3 * time.Second
	retry        = time.Second
	// A session checks for a pause of the process every TTL/lookPart.
	lookPart = 10
	// It keeps its etcd lease alive every TTL/keepPart.
	keepPart  = 4
	pingAfter = 10 * time.Second // the shortest interval that gRPC accepts
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
	// Requests notice a connection that has fallen silent; this is for one without requests.
	if c.Client.DialKeepAliveTime == 0 {
		c.Client.DialKeepAliveTime, c.Client.DialKeepAliveTimeout = pingAfter, callTimeout
	}
	// gRPC's default back-off grows to two minutes, and would delay detecting a restarted etcd as
	// long.
	soon := backoff.DefaultConfig
	soon.MaxDelay = retry
	c.Client.DialOptions = slices.Concat(silencegrpc.Options(), []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: callTimeout}),
	}, c.Client.DialOptions)
	return c
}

// validate returns all problems at once; each matches errInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errInvalid}, args...)...))
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

// New returns a function that creates a provider for each incarnation of a member. The function
// returns an error if a setting is invalid. The provider's StartMember fails if etcd does not
// answer within ten seconds, or if the cluster's name contains a "/".
func New(c Config) func() (cluster.ClusterProvider, error) {
	return func() (cluster.ClusterProvider, error) {
		if err := c.validate(); err != nil {
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
