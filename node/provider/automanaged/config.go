package automanaged

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// errInvalid is matched by every error of an invalid Config.
var errInvalid = errors.New("automanaged: invalid configuration")

// Config configures a provider. Zero fields take their defaults.
type Config struct {
	// Host is the address to listen on. Default: the host that remoting listens on.
	Host string `yaml:"host"`
	// Port is the port to listen on, 1 to 65535. Default 6330.
	Port int `yaml:"port"`
	// Hosts lists the host:port of all members; it may include this one. Required; at most 1000.
	Hosts []string `yaml:"hosts"`
	// Refresh is the pause between two requests to a host, 50ms to 1m. Default 1s. Lower values
	// detect a new or dead member sooner, at the cost of one request per host and round.
	Refresh time.Duration `yaml:"refresh"`
	// DropAfter is how long a member may be silent before it is dropped, from twice Refresh to 10m.
	// Default 3s, or twice Refresh if that is more. A member that asks this one is not silent, but
	// it must answer within three times DropAfter. Raising it tolerates longer pauses and cuts,
	// and delays the detection of permanent ones.
	DropAfter time.Duration `yaml:"drop-after"`
}

const (
	defaultPort   = 6330
	maxHosts      = 1000
	minRefresh    = 50 * time.Millisecond
	maxRefresh    = time.Minute
	maxDropAfter  = 10 * time.Minute
	startTimeout  = 10 * time.Second
	maxAnswer     = 64 << 10
	headerTimeout = 5 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Port == 0 {
		c.Port = defaultPort
	}
	if c.Refresh == 0 {
		c.Refresh = time.Second
	}
	if c.DropAfter == 0 {
		c.DropAfter = max(3*time.Second, 2*c.Refresh)
	}
	return c
}

func init() { settings.Checked(Config.validate) }

// validate returns all problems at once.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errInvalid}, args...)...))
	}
	if c.Port < 1 || c.Port > 65535 {
		bad("Port (%d) must be from 1 to 65535", c.Port)
	}
	if len(c.Hosts) == 0 || len(c.Hosts) > maxHosts {
		bad("Hosts has %d entries, it must have from 1 to %d", len(c.Hosts), maxHosts)
	}
	for _, h := range c.Hosts {
		host, port, err := net.SplitHostPort(h)
		n, notNumber := strconv.Atoi(port)
		if err != nil || host == "" || notNumber != nil || n < 1 || n > 65535 {
			bad("Hosts: %.80q must be host:port with a port from 1 to 65535", h)
		}
	}
	if c.Refresh < minRefresh || c.Refresh > maxRefresh {
		bad("Refresh (%v) must be from %v to %v", c.Refresh, minRefresh, maxRefresh)
	}
	if c.DropAfter < 2*c.Refresh || c.DropAfter > maxDropAfter {
		bad("DropAfter (%v) must be from twice Refresh (%v) to %v", c.DropAfter, 2*c.Refresh,
			maxDropAfter)
	}
	return settings.Join(errs...)
}

// New returns a function that creates a provider for each incarnation of a member. The function
// returns an error if a setting is invalid. The provider's StartMember fails if its port is in use.
func New(c Config) func() (cluster.ClusterProvider, error) {
	return func() (cluster.ClusterProvider, error) {
		if err := c.validate(); err != nil {
			return nil, err
		}
		c := c.withDefaults()
		return roster.New(roster.Config{
			Open:         func(self roster.Self) (roster.Directory, error) { return open(c, self) },
			StartTimeout: startTimeout,
			Retry:        c.Refresh,
		}), nil
	}
}
