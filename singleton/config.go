package singleton

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Config of a singleton. Fields that are not set take their defaults. All members use the same.
type Config struct {
	// Name tells the singletons of a cluster apart. It is part of actor names. Required, at most 64 bytes.
	Name string `yaml:"name"`
	// Role limits the hosts to members with this role; every one of them must call New. Default: every
	// member may host.
	Role string `yaml:"role"`
	// MinMembers is how many members with Role, this one included, must be seen at once before this member
	// hosts for the first time; later it may be fewer, and in a later life under node.Run Settle decides.
	// Set it to the number of processes that start together: then the instance is made once, at the
	// oldest, however long they take; but nowhere while one is missing. 1 hosts at once. Default 0: Settle
	// decides.
	MinMembers int `yaml:"min-members"`
	// Settle is how long a member that has just come up does not host, without MinMembers: time to see
	// those that start with it, of which one may be older. A host that leaves, or fails, later is
	// replaced without this wait. Raising it delays the first instance after a cold start. Default 2s.
	Settle time.Duration `yaml:"settle"`
	// StoreTimeout is how long the oldest member tries to acquire the lease while the lease store does not
	// answer it, before it lets the next oldest try. It should be several OperationTimeouts of the session.
	// Raising it rides out longer outages without a move. A host whose lease has expired for that reason
	// has waited already. Default 10s.
	StoreTimeout time.Duration `yaml:"store-timeout"`
	// HandOver bounds the time an instance has to end when it is to move; then it is stopped after the
	// message it is handling. Raising it lets more queued work finish, and lets others wait longer
	// for the next instance. Default 10s.
	HandOver time.Duration `yaml:"hand-over"`
	// MinBackoff is the wait before an instance that has failed is made again, doubled with each failure in a
	// row up to MaxBackoff; one that has run for MaxBackoff starts over. To fail is to panic, or to stop
	// without being told to. Raising it lets messages wait longer after a single panic. Default 100ms.
	MinBackoff time.Duration `yaml:"min-backoff"`
	// MaxBackoff bounds the wait; see MinBackoff. Default 10s.
	MaxBackoff time.Duration `yaml:"max-backoff"`
	// Tries is how many failures in a row make this member step aside, so that the next oldest hosts. The last
	// member that may host goes on trying. 1 moves the instance after each failure. Default 5, at most 1000.
	Tries int `yaml:"tries"`
	// Buffer is how many messages each proxy, and each host, keeps while no instance takes them. Those
	// that do not fit are refused, the newest first: they go to the dead letters and are counted. Default
	// 1000, at most 1,000,000.
	Buffer int `yaml:"buffer"`
	// LeaseName is the name of the lease. Default "singleton-" and Name. Clusters that share a store must
	// not share it, or they share the singleton's lease, and only one of them has an instance.
	LeaseName string `yaml:"lease-name"`
	// StopMessage is sent to the instance when it is to move; the instance then ends itself, within
	// HandOver. Default: it is poisoned, so it handles what is in its mailbox and stops. A lost lease
	// stops the instance at once in any case.
	StopMessage any `yaml:"-"`
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

// maxMinMembers is more than any cluster has; a larger number is a mistake.
const maxMinMembers = 10_000

// maxTries is with the least back-off still a second of failures.
const maxTries = 1000

// proxyInfix is what tells the actor names of proxies from those of managers.
const proxyInfix = "proxy-"

// Validate reports every problem at once. The errors are ErrInvalid.
func (c Config) Validate() error {
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
	}{{"Settle", c.Settle}, {"StoreTimeout", c.StoreTimeout}, {"HandOver", c.HandOver}, {"MinBackoff", c.MinBackoff}, {"MaxBackoff", c.MaxBackoff}} {
		if d.value < time.Millisecond || d.value > time.Hour {
			bad("%s is %v, it must be from 1ms to 1h", d.name, d.value)
		}
	}
	if err := coordination.CheckName(c.LeaseName); err != nil {
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
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
}

func (c Config) managerName() string { return "concord-singleton-" + c.Name }

func (c Config) proxyName() string { return "concord-singleton-" + proxyInfix + c.Name }
