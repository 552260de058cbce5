package distributeddata

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Config of a replicator. A field that is not set takes its default. Every member of the cluster that
// has the role runs a replicator of the same name with the same MinMembers. In a later life of the same process the
// Config given there counts; what the replicator holds goes along by Name.
type Config struct {
	// Name tells several replicators of one member apart, at most 64 bytes. Two of one name on one actor system
	// are refused with ErrInvalid. Default "ddata".
	Name string `yaml:"name"`
	// Role limits the replicas to members with this role. Default: all members.
	Role string `yaml:"role"`
	// Member is the name under which majorities count this member, at most 256 bytes. A process that starts under
	// it again takes the place of the one before; without, one that comes back at another address is one more
	// member, and the former one counts on until it is forgotten. Set it where the platform has stable names, as
	// of the pods of a StatefulSet; no two processes that run at once may share one: the later one wins, and the
	// earlier one counts no more. Default: the address.
	Member string `yaml:"member"`
	// MinMembers is how many members must be together before the first of them count, and the least number that
	// majorities are counted in. It has no default: while it is not set, every operation above Local fails at once
	// with ErrInvalid. For a cluster of fixed size set it to that size. For one that is to grow and shrink set it to
	// two thirds, rounded up, of the most members that may ever run at once: with less, two clusters can begin
	// apart. 1 is for a single process. It should be the same at all members; one that has another is logged.
	MinMembers int `yaml:"min-members"`
	// Membership, if set, keeps who is counted in majorities as a record in a store, the same at all members: for
	// members that are autoscaled and have no names, and where MinMembers cannot be known. MinMembers is then 1 if
	// it is not set: the first process that finds nobody counted begins the cluster alone, and one that starts
	// apart from it finds that in the record. The store is asked when a member starts, leaves or is forgotten.
	// While it does not answer, none of that happens, a member that closes is counted on, and a running cluster
	// goes on: reads and writes never ask. A restart of all under their names keeps the count; if members without
	// names all crash at once, use Replicator.Forget with Force for each. The last member that closes takes itself
	// out, and what it held is gone. Trouble with the record is logged, and in Status. Default: none.
	Membership Membership `yaml:"-"`
	// ForgetAfter is how long a member that has vanished is counted, before a majority agrees to go on without it.
	// It carries no safety, and does nothing while no more than MinMembers are counted. Longer than partitions and
	// restarts usually last, shorter than the second crash of a member without a stable name. Default 10m;
	// negative: never, see Replicator.Forget.
	ForgetAfter time.Duration `yaml:"forget-after"`
	// HeartbeatInterval is how often each member tells some others what it has seen. A lost change is
	// noticed within about two of them. Default 1s.
	HeartbeatInterval time.Duration `yaml:"heartbeat-interval"`
	// OperationTimeout bounds operations whose context or message sets no deadline, also while the replicator's
	// goroutine is busy in a function of the application, and how long they wait for the next life of the
	// member. The same holds for Close. Default 5s.
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	// NotifyInterval is how long changes are gathered before subscribers are told. Default 50ms;
	// negative: not at all.
	NotifyInterval time.Duration `yaml:"notify-interval"`
	// LogBytes is the memory in which a replica keeps, for members that missed changes, what the
	// changes were. One that missed more is sent the whole state. Default 64 MiB.
	LogBytes int `yaml:"log-bytes"`
	// Meters is where the metrics go; see Status for their names. Default otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
}

func (c Config) withDefaults() Config {
	set(&c.Name, "ddata")
	if c.Membership != nil {
		set(&c.MinMembers, 1)
	}
	set(&c.ForgetAfter, 10*time.Minute)
	set(&c.HeartbeatInterval, time.Second)
	set(&c.OperationTimeout, 5*time.Second)
	set(&c.NotifyInterval, 50*time.Millisecond)
	set(&c.LogBytes, 64<<20)
	return c
}

// maxMinMembers is more than any cluster has; a larger number is a mistake.
const maxMinMembers = 10_000

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every problem at once. The errors are ErrInvalid.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if len(c.Name) > 64 {
		bad("Name has %d bytes, over the limit of 64", len(c.Name))
	}
	if c.Member != "" {
		if err := core.CheckMember(c.Member); err != nil {
			bad("Member: %w", err)
		}
	}
	if c.MinMembers < 0 || c.MinMembers > maxMinMembers {
		bad("MinMembers is %d, must be from 1 to %d, or 0 for nothing but Local", c.MinMembers, maxMinMembers)
	}
	if c.ForgetAfter > 0 && c.ForgetAfter < c.HeartbeatInterval {
		bad("ForgetAfter is %v, must be at least HeartbeatInterval, %v", c.ForgetAfter, c.HeartbeatInterval)
	}
	if c.HeartbeatInterval < 10*time.Millisecond || c.HeartbeatInterval > time.Minute {
		bad("HeartbeatInterval is %v, must be from 10ms to 1m", c.HeartbeatInterval)
	}
	if c.OperationTimeout < time.Millisecond {
		bad("OperationTimeout is %v, must be at least 1ms", c.OperationTimeout)
	}
	if c.LogBytes < 1<<16 {
		bad("LogBytes is %d, must be at least 65536", c.LogBytes)
	}
	return errors.Join(errs...)
}
