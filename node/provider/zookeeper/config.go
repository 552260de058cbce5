package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// errInvalid is matched by every error of an invalid Config.
var errInvalid = errors.New("zookeeper: invalid configuration")

// Config configures a provider. Zero fields take their defaults.
type Config struct {
	// Servers are the addresses of the servers, each host:port. Required.
	Servers []string `yaml:"servers"`
	// Base is the path of the node below which clusters are kept; it is created if it does not
	// exist. Default "/protoactor", the same as Proto.Actor's provider.
	Base string `yaml:"base"`
	// SessionTimeout is how long a member that cannot reach ZooKeeper stays listed, 1s to 10m.
	// Default 5s. By default servers grant between 2 and 20 of their ticks, so at least 4s.
	SessionTimeout time.Duration `yaml:"session-timeout"`
	// ACL is the access control list of created nodes. Default: every user has all permissions.
	ACL []zk.ACL `yaml:"-"`
	// AuthScheme and Auth, such as "digest" and "user:password", are the credentials of the
	// session. Default: none.
	AuthScheme string `yaml:"auth-scheme"`
	Auth       string `yaml:"auth"`
	// Dial connects to a server; set it to use TLS. Default net.DialTimeout.
	Dial zk.Dialer `yaml:"-"`
}

const (
	minSession   = time.Second
	maxSession   = 10 * time.Minute
	startTimeout = 10 * time.Second
	callTimeout  = 3 * time.Second
	retry        = time.Second
)

func (c Config) withDefaults() Config {
	if c.Base == "" {
		c.Base = "/protoactor"
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 5 * time.Second
	}
	if len(c.ACL) == 0 {
		c.ACL = zk.WorldACL(zk.PermAll)
	}
	if c.Dial == nil {
		c.Dial = net.DialTimeout
	}
	return c
}

// validate returns all problems at once; each matches errInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errInvalid}, args...)...))
	}
	if len(c.Servers) == 0 {
		bad("Servers is empty")
	}
	for _, s := range c.Servers {
		if _, _, err := net.SplitHostPort(s); err != nil {
			bad("Servers: %.80q is not host:port", s)
		}
	}
	if !strings.HasPrefix(c.Base, "/") || strings.HasSuffix(c.Base, "/") {
		bad("Base (%.80q) must begin with \"/\" and not end with it", c.Base)
	}
	if c.SessionTimeout < minSession || c.SessionTimeout > maxSession {
		bad("SessionTimeout (%v) must be from %v to %v", c.SessionTimeout, minSession, maxSession)
	}
	if (c.AuthScheme == "") != (c.Auth == "") {
		bad("AuthScheme and Auth belong together")
	}
	return errors.Join(errs...)
}

// New returns a function that creates a provider for each incarnation of a member. The function
// returns an error if a setting is invalid. The provider's StartMember fails if ZooKeeper does not
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
			Grace:        c.SessionTimeout + 2*retry,
			Retry:        retry,
		}), nil
	}
}
