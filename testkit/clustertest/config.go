package clustertest

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// Member is the place of one member, which several processes and lives may have one after the other.
type Member struct {
	Cluster string
	Index   int    // from 0; different for all members that a check has
	Host    string // that remoting listens on: the loopback address
	Port    int    // of remoting
	// Spare has a free port for each Index of the check, for providers that listen themselves.
	Spare []int
}

// Address is the host:port under which others list the member.
func (m Member) Address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// Name is different for all members of all checks: lower-case letters, digits and "-".
func (m Member) Name() string { return fmt.Sprintf("%s-%d", m.Cluster, m.Index) }

// Config says what the provider needs and promises. The zero value suits one that has no server, or one
// whose server is not to be stopped. Durations that are not set take their defaults, which leave room for a
// slow machine: they bound, they do not measure.
type Config struct {
	// Prepare is called before each process of a member starts, and may be nil. What it makes must go with
	// the test. Checks call it side by side, each for members of its own; Killed likewise.
	Prepare func(t testing.TB, m Member)
	// Killed is called after the process of a member was killed, and may be nil. It is for providers that
	// rely on somebody else to notice, such as the kubelet.
	Killed func(t testing.TB, m Member)
	// Server is the provider's. nil: P9 and P14 are not checked, and the test says so.
	Server *Server
	// Listens says that the provider listens on Spare[Index]: P10 is then checked for that port too.
	Listens bool
	// OneByOne starts members one after the other where they would be started together. It hides races
	// between starts, for providers that are known to have them.
	OneByOne bool
	// ListedWithin bounds how long a member takes from its start to be listed by all. Default 1m.
	ListedWithin time.Duration
	// DroppedWithin bounds how long it takes to drop a member whose process was killed. Default 1m.
	DroppedWithin time.Duration
	// LeftWithin bounds how long it takes to drop a member that was shut down, and to end what its life
	// has begun. Default 1m.
	LeftWithin time.Duration
	// KeptFor is how long members must keep each other after the server is back (P9) or a pause has ended
	// (P16). Default 15s.
	KeptFor time.Duration
	// Pause is how long all members are stopped for P16: longer than the provider needs to drop a member.
	// Default 8s.
	Pause time.Duration
	// Except names rules that are not checked, with the reason, which the test says.
	Except map[string]string
	// Leaks is what each life may leave behind. Default: nothing.
	Leaks Leaks
}

// Leaks are counts per life. Goroutines of Proto.Actor that end by themselves within a minute are not
// counted.
type Leaks struct{ Goroutines, Files int }

// Server is the server of a provider, alone or a majority of several.
type Server struct {
	// Name must be in the error of a start without the server. Default: any error will do.
	Name string
	// Stop returns when the server does not answer any more, Start when it does again with all it knew.
	Stop, Start func(t testing.TB)
	// Outage is how long P9 leaves the server down, at least. Default 10s.
	Outage time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.ListedWithin, time.Minute)
	set(&c.DroppedWithin, time.Minute)
	set(&c.LeftWithin, time.Minute)
	set(&c.KeptFor, 15*time.Second)
	set(&c.Pause, 8*time.Second)
	if c.Prepare == nil {
		c.Prepare = func(testing.TB, Member) {}
	}
	if c.Killed == nil {
		c.Killed = func(testing.TB, Member) {}
	}
	if c.Server != nil {
		s := *c.Server
		set(&s.Outage, 10*time.Second)
		c.Server = &s
	}
	return c
}
