package singleton

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/settings"
)

// Config is the configuration of a singleton. Zero fields take their defaults. All members use the
// same Config.
type Config struct {
	// Name distinguishes the singletons of a cluster. Required, at most 64 bytes.
	Name string `yaml:"name"`
	// Role limits the hosts to members with this role, of those that call New. Default: every
	// member that calls New may host.
	Role string `yaml:"role"`
	// PreferNewest prefers hosts with the newest application version; see node.Config.AppVersion.
	// The instance then moves once in a rolling update, to the first member of the new version.
	// Default false: versions do not count.
	PreferNewest bool `yaml:"prefer-newest"`
	// PreferRole prefers hosts with this role, after PreferNewest. The other members with Role host
	// while there is none. Default: no role is preferred.
	PreferRole string `yaml:"prefer-role"`
	// MinMembers is the number of members with Role, including this one, that must be visible at
	// the same time before this member hosts for the first time, unless another one has the
	// instance already. Later there may be fewer, and in a later incarnation under node.Run Settle
	// decides. Set it to the number of processes that start together: then the instance is made
	// once, at the oldest, however long they take, but not while one of them is missing. 1 hosts at
	// once. Default 0: Settle decides.
	MinMembers int `yaml:"min-members"`
	// Settle is how long a member that has just started does not host, if MinMembers is 0: time to
	// see the members that start with it, one of which may be older. A host that leaves or fails
	// later is replaced without this wait. Raising it delays the first instance after a cold start.
	// Default 2s.
	Settle time.Duration `yaml:"settle"`
	// StoreTimeout is how long the oldest member tries to acquire the lease while the lease store
	// does not answer, before it lets the next oldest try. It should be several OperationTimeouts
	// of the session. Raising it survives longer outages without a move. A host whose lease has
	// expired for that reason has already waited. Default 10s.
	StoreTimeout time.Duration `yaml:"store-timeout"`
	// HandOver bounds the time that an instance has to stop when it moves; after that it is stopped
	// as soon as it has handled its present message. Raising it lets more queued work finish, but
	// delays the next instance. Default 10s.
	HandOver time.Duration `yaml:"hand-over"`
	// MinBackoff is the wait before an instance that has failed is made again, doubled with each
	// failure in a row up to MaxBackoff. The wait starts over after an instance has run for
	// MaxBackoff, without the time in which it was made, in Started, and in the message in which it
	// failed. To fail is to panic, or to stop without a request. Raising it delays messages after a
	// single panic. Default 100ms.
	MinBackoff time.Duration `yaml:"min-backoff"`
	// MaxBackoff bounds the wait; see MinBackoff. Default 10s.
	MaxBackoff time.Duration `yaml:"max-backoff"`
	// Tries is the number of failures in a row after which this member lets the next oldest host.
	// The last member that may host keeps trying. 1 moves the instance after each failure. Default
	// 5, at most 1000.
	Tries int `yaml:"tries"`
	// Buffer is the number of messages that each proxy, and each host, keeps while there is no
	// instance. Messages beyond that are refused: they go to the dead letters and are counted.
	// Default 1000, at most 1,000,000.
	Buffer int `yaml:"buffer"`
	// LeaseName is the name of the lease. Default "singleton-" followed by Name. Clusters that
	// share a store must use different names; otherwise they share the lease, and only one of them
	// has an instance.
	LeaseName string `yaml:"lease-name"`
	// StopMessage is sent to the instance when it must move; the instance then stops itself, within
	// HandOver. Default: the instance is poisoned, so it handles the messages in its mailbox and
	// stops. A lost lease stops the instance at once in any case.
	StopMessage any `yaml:"-"`
	// Meters receives the metrics, named concord.singleton.*; see Stats. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
}

func (c Config) withDefaults() Config {
	set(&c.Settle, 2*time.Second)
	set(&c.StoreTimeout, 10*time.Second)
	set(&c.HandOver, 10*time.Second)
	set(&c.MinBackoff, min(100*time.Millisecond, max(c.MaxBackoff, 0)))
	set(&c.MinBackoff, 100*time.Millisecond)
	set(&c.MaxBackoff, max(10*time.Second, c.MinBackoff))
	set(&c.Tries, 5)
	set(&c.Buffer, 1000)
	set(&c.LeaseName, "singleton-"+c.Name)
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxMinMembers is larger than any cluster; a larger number is a mistake.
const maxMinMembers = 10_000

// maxTries still means a second of failures with the smallest back-off.
const maxTries = 1000

// proxyInfix distinguishes the actor names of proxies from those of managers.
const proxyInfix = "proxy-"

func init() { settings.Checked(Config.validate) }

// validate reports every problem at once. The errors are ErrInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch {
	case c.Name == "" || len(c.Name) > 64:
		bad("Name has %d bytes, it must have from 1 to 64", len(c.Name))
	case strings.ContainsFunc(c.Name, unfit):
		bad("Name %q must consist of letters, digits and any of -_.", c.Name)
	case strings.HasPrefix(c.Name, proxyInfix):
		bad("Name %q must not begin with %q", c.Name, proxyInfix)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Settle", c.Settle}, {"StoreTimeout", c.StoreTimeout}, {"HandOver", c.HandOver},
		{"MinBackoff", c.MinBackoff}, {"MaxBackoff", c.MaxBackoff}} {
		if d.value < time.Millisecond || d.value > time.Hour {
			bad("%s is %v, it must be from 1ms to 1h", d.name, d.value)
		}
	}
	if c.PreferRole != "" && c.PreferRole == c.Role {
		bad("PreferRole %q must differ from Role: every host has that role", c.PreferRole)
	}
	if err := leases.Held.CheckName(c.LeaseName); err != nil {
		bad("LeaseName: %w", err)
	}
	if c.MinBackoff > c.MaxBackoff {
		bad("MinBackoff (%v) must not be above MaxBackoff (%v)", c.MinBackoff, c.MaxBackoff)
	}
	if c.Tries < 1 || c.Tries > maxTries {
		bad("Tries is %d, it must be from 1 to %d", c.Tries, maxTries)
	}
	if c.MinMembers < 0 || c.MinMembers > maxMinMembers {
		bad("MinMembers is %d, it must be from 0 to %d", c.MinMembers, maxMinMembers)
	}
	if c.Buffer < 1 || c.Buffer > 1_000_000 {
		bad("Buffer is %d, it must be from 1 to 1000000", c.Buffer)
	}
	return errors.Join(errs...)
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		strings.ContainsRune("-_.", r))
}

func (c Config) managerName() string { return "concord-singleton-" + c.Name }

func (c Config) proxyName() string { return "concord-singleton-" + proxyInfix + c.Name }
