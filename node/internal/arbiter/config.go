package arbiter

import (
	"errors"
	"fmt"
	"time"
)

// Config configures an arbiter. All members of a cluster should use the same.
type Config struct {
	// Members is the minimum number of members of a whole view. A view with fewer needs the lease,
	// even after members have left in order. Default 1.
	Members int
	// Hold is how long members may be missing before anything changes. Raising it tolerates longer
	// flaps of the provider, and keeps the gates of a losing side open for longer. Default 2s.
	Hold time.Duration
	// Delay orders the sides of a partition: a side that sees size of n members waits
	// Delay·(n−size)/n after Hold before it tries to acquire, and a side that sees more than half
	// of them does not wait. Delay should exceed the difference between the times at which the
	// providers of the two sides report a cut. Default 5s.
	Delay time.Duration
	// Operation bounds one attempt to acquire the lease. Default 3s.
	Operation time.Duration
	// Retry is the time from one attempt to the next. Default 2s.
	Retry time.Duration
	// Settle is how long a view must be whole before the lease is released. Default 3s.
	Settle time.Duration
	// Beat is how often the leader sends its verdict to the others, and Idle how often it does so
	// while its view is whole. Defaults 1s and 5s.
	Beat, Idle time.Duration
	// Lapse is how long a member assumes, without hearing from its leader, that the leader holds
	// the lease. It must be below the Drain of the session, so that the gates of a side whose
	// leader has died are shut before another side can acquire the lease. Default 3s.
	Lapse time.Duration
}

// WithDefaults returns c with zero fields set to their defaults.
func (c Config) WithDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Members == 0 {
		c.Members = 1
	}
	set(&c.Hold, 2*time.Second)
	set(&c.Delay, 5*time.Second)
	set(&c.Operation, 3*time.Second)
	set(&c.Retry, 2*time.Second)
	set(&c.Settle, 3*time.Second)
	set(&c.Beat, time.Second)
	set(&c.Idle, 5*time.Second)
	set(&c.Lapse, 3*time.Second)
	return c
}

// Validate returns all problems at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	for _, d := range []struct {
		name string
		is   time.Duration
	}{
		{"Hold", c.Hold}, {"Delay", c.Delay}, {"Operation", c.Operation}, {"Retry", c.Retry},
		{"Settle", c.Settle},
		{"Beat", c.Beat}, {"Idle", c.Idle}, {"Lapse", c.Lapse},
	} {
		if d.is < time.Millisecond || d.is > time.Hour {
			errs = append(errs, fmt.Errorf("%s (%v) must be from 1ms to 1h", d.name, d.is))
		}
	}
	if c.Members < 1 || c.Members > maxMembers {
		errs = append(errs, fmt.Errorf("%s (%d) must be from 1 to %d", "Members", c.Members,
			maxMembers))
	}
	if c.Lapse < 2*c.Beat {
		errs = append(errs, fmt.Errorf("%s (%v) must be at least twice Beat (%v)", "Lapse", c.Lapse,
			c.Beat))
	}
	return errors.Join(errs...)
}

// Decided returns how long after the views of a partition have become stable at most one side has
// an open gate.
func (c Config) Decided() time.Duration { return max(c.Hold+c.Operation, c.Idle) + c.Lapse }

// Healed returns how long after views have become whole every gate is open.
func (c Config) Healed() time.Duration {
	return c.Settle + c.Lapse + c.Operation + c.Retry + 2*c.Idle
}

// delay returns how long a side that sees size of n members lets larger sides try first.
func (c Config) delay(size, n int) time.Duration {
	switch {
	case n == 0:
		return c.Delay / 2 // just started
	case 2*size > n:
		return 0
	}
	return c.Delay * time.Duration(n-size) / time.Duration(n)
}
