package singleton

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config of a singleton. Fields that are not set take their defaults. All members use the same.
type Config struct {
	// Name tells the singletons of a cluster apart. It is part of actor names. Required, at most 64 bytes.
	Name string `yaml:"name"`
	// Role limits the hosts to members with this role; every one of them must call New. Default: every
	// member may host.
	Role string `yaml:"role"`
	// HandOver bounds the time an instance has to end when it is to move; then it is stopped after the
	// message it is handling. Raising it lets more queued work finish, and lets others wait longer
	// for the next instance. Default 10s.
	HandOver time.Duration `yaml:"hand-over"`
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
	set(&c.HandOver, 10*time.Second)
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
	if c.HandOver < time.Millisecond || c.HandOver > time.Hour {
		bad("HandOver is %v, it must be from 1ms to 1h", c.HandOver)
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
