package grains

import (
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/sharding"
)

// Config configures the lookup of New. A member that runs grains sets Store or Session, and a
// member that only calls them sets neither. All other fields have defaults. Sharding must be the
// same on all members.
type Config struct {
	// Store is the lease store. New opens a session on it, which ends with the member. The caller
	// closes the store after the member has stopped.
	Store coordination.Store `yaml:"-"`
	// Session is an open session in place of Store, such as that of node.Node. It must outlive the
	// member.
	Session *coordination.Session `yaml:"-"`
	// Replicator carries the table of shards, and the ids of remembered grains. Default: one named
	// after Sharding.Type, with MinMembers.
	Replicator *distributeddata.Replicator `yaml:"-"`
	// MinMembers is how many members must see each other before grains are found for the first
	// time: two thirds, rounded up, of those that will run, so that two parts of a cluster do not
	// begin apart; see node.RunConfig.MinMembers, which is the default. Required without that and
	// without Replicator. If it is set, it is also the default of Sharding.MinMembers.
	MinMembers int `yaml:"min-members"`
	// Sharding configures the shards: how many there are, when grains are passivated, whether they
	// are remembered, and where shards go. StopMessage must not be set. Type defaults to "grains".
	Sharding sharding.Config `yaml:"sharding"`
	// Timeout bounds Get, which waits while the shard of a grain has no host. A caller of
	// cluster.Request waits no longer than its own timeout, but no shorter than one Get, so Timeout
	// should not be above that. Default 5s, from 10ms to 1h.
	Timeout time.Duration `yaml:"timeout"`
}

func (c Config) withDefaults() Config {
	if c.Sharding.Type == "" {
		c.Sharding.Type = "grains"
	}
	if c.Sharding.MinMembers == 0 {
		c.Sharding.MinMembers = c.MinMembers
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	return c
}

// validate returns all problems at once; each matches sharding.ErrInvalid. The process states that
// cluster members begin its cluster, or 0.
func (c Config) validate(cluster int) error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: grains: "+format,
			append([]any{sharding.ErrInvalid}, args...)...))
	}
	if c.Store != nil && c.Session != nil {
		bad("Store and Session are set, only one of them may be")
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > time.Hour {
		bad("Timeout is %v, it must be from 10ms to 1h", c.Timeout)
	}
	if c.Sharding.StopMessage != nil {
		bad("Sharding.StopMessage must not be set: a grain is stopped as by Proto.Actor")
	}
	switch {
	case c.MinMembers < 0:
		bad("MinMembers is %d, it must not be negative", c.MinMembers)
	case c.Replicator == nil && c.MinMembers == 0 && cluster == 0:
		bad("MinMembers must be set, here or in node.RunConfig, to two thirds of the members")
	}
	return errors.Join(append(errs, settings.Check(c.Sharding))...)
}
