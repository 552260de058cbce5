package distributeddata

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
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
	// MinMembers is the number of replicas below which nothing counts as a majority: a member that sees
	// fewer neither becomes ready nor counts itself enough. Set it to the size of the smallest complete
	// cluster; with the default, 1, a member that is alone in its view is its own majority.
	MinMembers int `yaml:"min-members"`
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
	set(&c.MinMembers, 1)
	set(&c.HeartbeatInterval, time.Second)
	set(&c.OperationTimeout, 5*time.Second)
	set(&c.NotifyInterval, 50*time.Millisecond)
	set(&c.LogBytes, 64<<20)
	return c
}

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
	if c.MinMembers < 1 {
		bad("MinMembers is %d, must be at least 1", c.MinMembers)
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
