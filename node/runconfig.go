package node

import (
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/logging"
	"github.com/concord-go/concord/internal/settings"
)

// RunConfig configures a member that Run keeps in its cluster. Cluster and Provider are required;
// other unset fields take their defaults.
type RunConfig struct {
	// Cluster is the name of the cluster. See the function Cluster for names that conflict.
	Cluster string `yaml:"cluster"`
	// Remote configures the remoting of the member and its roles. With Port 0, every incarnation
	// keeps the port of the first.
	Remote Config `yaml:",inline"`
	// Provider creates the cluster provider. It is called for each incarnation, because a provider
	// cannot be started twice.
	Provider func() (cluster.ClusterProvider, error) `yaml:"-"`
	// Store opens the lease store. It is called once. The session on the store is Node.Session in
	// every incarnation. At the end Run closes the session, and the store if it is an io.Closer. If
	// Store is nil, there is no session. All members must open the same store: a member with
	// another one than the oldest member hosts nothing, and its Run returns an error that matches
	// ErrInvalid after two TTLs.
	Store func() (coordination.Store, error) `yaml:"-"`
	// Session configures the session. Its Logger defaults to the Logger of Run. Its Owner defaults
	// to the address of the member if that is known before the member listens: Remote.Advertised,
	// or Remote.Host with a nonzero Remote.Port.
	Session coordination.Config `yaml:"-"`
	// Guard, if set, is the name of a lease that this member must hold to host singletons and
	// shards. Each member needs its own: include its address or host name in the name. Guard
	// requires Store.
	Guard string `yaml:"guard"`
	// HostWithoutMajority makes a side of a partition that does not have a majority of the members
	// go on hosting singletons and shards. The cost: if the member with the coordinator's lease is
	// cut off from the others and reaches the lease store, all shards move to it, and the others,
	// who may be many, have none for the length of the cut. By default, and only with Store and
	// without Session.Forever, the side with a majority hosts, and every other side stops. If no
	// side has a majority, one of them hosts, which the lease store decides.
	HostWithoutMajority bool `yaml:"host-without-majority"`
	// MinMembers is how many members begin the cluster. Set it to two thirds, rounded up, of the
	// largest number of members that may ever run at once, a rolling update included: 2 of 3, 3 of
	// 4, 4 of 5 or 6; 1 only for a single process. It is a floor in three ways:
	//
	//   - The first incarnation counts as started, and the work passed to Node.Go begins, when this
	//     member sees as many, including itself. Later incarnations do not wait: others may be gone
	//     for good.
	//   - A side on which nobody knows how many members there are hosts singletons and shards only
	//     if it has as many, so a member that is cut off in its first seconds does not take itself
	//     for the cluster. For this more than half is enough.
	//   - Replicators and grains without a number of their own begin with as many, and compute
	//     majorities from at least as many; see distributeddata.Config.MinMembers. For this more
	//     than half is not enough: M members could begin beside a majority, M/2 + 1, of M others
	//     that had begun before. With T members at most, M + ⌊M/2⌋ + 1 > T rules that out.
	//
	// Raise it at all members before you add members, and lower it after you have removed some.
	// Default: 1, and replicators work at Local only.
	MinMembers int `yaml:"min-members"`
	// Logger receives the log records of the member and of Proto.Actor; progress messages of
	// Proto.Actor are logged at Debug. Default slog.Default().
	Logger *slog.Logger `yaml:"-"`
	// Lookup, if set, creates the identity lookup of each incarnation, after register has returned,
	// for clusters with virtual actors: see package sharding/grains, which runs each of them once.
	// By default it is Proto.Actor's disthash, which may run a virtual actor twice while members
	// join, leave or disagree.
	Lookup func(*Node) (cluster.IdentityLookup, error) `yaml:"-"`
	// System, Options and Remoting are applied after the options that Run sets on the actor system,
	// the cluster and the remoting of each incarnation. For Remoting see the function Remote.
	System   []actor.ConfigOption   `yaml:"-"`
	Options  []cluster.ConfigOption `yaml:"-"`
	Remoting []remote.ConfigOption  `yaml:"-"`
	// StartTimeout bounds the start of an incarnation. When it has passed, Run fails if this is the
	// first one and retries if it is a later one. Default 30s.
	StartTimeout time.Duration `yaml:"start-timeout"`
	// StopTimeout bounds the orderly stop of an incarnation. A phase may take what the following
	// ones leave: they keep half of an equal share each. Default 10s.
	StopTimeout time.Duration `yaml:"stop-timeout"`
	// Patience is how long a split of the cluster must be certain before a member steps down for
	// the other side. It should be at least two rounds of the provider. Raising it delays healing.
	// Default 2s.
	Patience time.Duration `yaml:"patience"`
	// RejoinsPerHour bounds how often the member joins again: when a split keeps recurring, the
	// next incarnation is delayed. Each incarnation adds an entry to the version vectors of
	// replicated data. Default 60.
	RejoinsPerHour int `yaml:"rejoins-per-hour"`
	// OnSplit is what the process does when the member has been split off. Default Rejoin.
	OnSplit OnSplit `yaml:"on-split"`
	// Health, if set, reports the state of the member; it is an http.Handler for /livez and
	// /readyz.
	Health *Health `yaml:"-"`
	// Meters receives the metrics of the member, named concord.node.*. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
	// NoSignals leaves the handling of SIGTERM and SIGINT to the caller.
	NoSignals bool `yaml:"no-signals"`
}

// OnSplit is what the process does when its member has been split off from the cluster.
type OnSplit uint8

const (
	// Rejoin begins another incarnation in the same process: a new actor system with a new member
	// id, which takes over the replicated data of the ended incarnation. Nothing written is lost.
	Rejoin OnSplit = iota
	// Reexec stops in order and then re-executes the program, for programs that cannot have a
	// second incarnation in one process. Writes that the member made while it was alone are lost
	// with its memory. Linux only.
	Reexec
	// Exit stops in order and makes Run return ErrSplit, for a supervisor that starts another
	// process. Writes that the member made while it was alone are lost with its memory.
	Exit
)

// String returns the name for logs.
func (o OnSplit) String() string {
	switch o {
	case Rejoin:
		return "rejoin"
	case Reexec:
		return "re-exec"
	case Exit:
		return "exit"
	}
	return fmt.Sprintf("OnSplit(%d)", uint8(o))
}

// UnmarshalText parses what String returns. The error matches ErrInvalid.
func (o *OnSplit) UnmarshalText(text []byte) error {
	for known := Rejoin; known <= Exit; known++ {
		if string(text) == known.String() {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("%w: %.80q is none of %v, %v and %v", ErrInvalid, text, Rejoin, Reexec, Exit)
}

func (c RunConfig) withDefaults() RunConfig {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.StartTimeout, 30*time.Second)
	set(&c.StopTimeout, 10*time.Second)
	set(&c.Patience, 2*time.Second)
	if c.RejoinsPerHour == 0 {
		c.RejoinsPerHour = 60
	}
	c.Logger = logging.Bounded(c.Logger)
	if c.Session.Logger == nil {
		c.Session.Logger = c.Logger
	}
	if c.Health == nil {
		c.Health = &Health{}
	}
	return c
}

// session returns the configuration of the session, with the default Owner filled in.
func (c RunConfig) session() coordination.Config {
	s := c.Session
	if s.Owner != "" {
		return s
	}
	r := c.Remote.withDefaults()
	switch {
	case r.Advertised != "":
		s.Owner = r.Advertised
	case r.Port != 0:
		s.Owner = net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	}
	return s
}

func init() { settings.Checked(RunConfig.validate) }

// validate returns all problems at once; each matches ErrInvalid.
func (c RunConfig) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if strconv.IntSize < 64 {
		bad("this program is built for a platform of %d bits (GOARCH=%s), on which Proto.Actor's "+
			"process registry panics: build it for one of 64 bits", strconv.IntSize, runtime.GOARCH)
	}
	if c.Cluster == "" {
		bad("Cluster, the name of the cluster, must be set")
	}
	if c.Provider == nil {
		bad("Provider must be set: it makes the cluster provider of each incarnation")
	}
	if c.MinMembers < 0 {
		bad("MinMembers (%d) must be at least 1, or 0 for not stated", c.MinMembers)
	}
	if c.RejoinsPerHour < 1 || c.RejoinsPerHour > 3600 {
		bad("RejoinsPerHour (%d) must be from 1 to 3600", c.RejoinsPerHour)
	}
	for _, d := range []struct {
		name     string
		is       time.Duration
		min, max time.Duration
	}{
		{"StartTimeout", c.StartTimeout, time.Second, time.Hour},
		{"StopTimeout", c.StopTimeout, 10 * time.Millisecond, time.Hour},
		{"Patience", c.Patience, 100 * time.Millisecond, 10 * time.Minute},
	} {
		if d.is < d.min || d.is > d.max {
			bad("%s (%v) must be from %v to %v", d.name, d.is, d.min, d.max)
		}
	}
	if c.Guard != "" && c.Store == nil {
		bad("Guard is a lease: Store must be set")
	}
	if c.Store != nil && c.Cluster != "" {
		if err := leases.Held.CheckName(majorityLease(c.Cluster)); err != nil {
			bad("Cluster, as part of the name of a lease: %w", err)
		}
	}
	if c.Guard != "" {
		if err := leases.Held.CheckName(c.Guard); err != nil {
			bad("Guard: %w", err)
		}
	}
	if c.OnSplit > Exit {
		bad("OnSplit (%d) must be Rejoin, Reexec or Exit", c.OnSplit)
	}
	if c.OnSplit == Reexec && !canReexec {
		bad("OnSplit is Reexec, which this operating system does not support")
	}
	if c.Store == nil {
		return settings.Join(append(errs, c.Remote.validate())...)
	}
	if err := settings.Check(c.session()); err != nil {
		errs = append(errs, fmt.Errorf("%w: Session: %w", ErrInvalid, err))
	}
	return settings.Join(append(errs, c.Remote.validate())...)
}
