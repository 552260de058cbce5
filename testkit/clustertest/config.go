package clustertest

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// Member is the place of one member. Several processes and incarnations may use it in succession.
type Member struct {
	Cluster string
	Index   int    // from 0; distinct for all members of a check
	Host    string // the address that remoting listens on: loopback
	Port    int    // of remoting
	// Spare holds a free port for each Index of the check, for providers that listen on ports
	// themselves.
	Spare []int
}

// Address returns the host:port under which others list the member.
func (m Member) Address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// Name returns a name that is unique among the members of all checks: lower-case letters, digits
// and "-".
func (m Member) Name() string { return fmt.Sprintf("%s-%d", m.Cluster, m.Index) }

// Config describes the requirements and guarantees of a provider. The zero value suits a provider
// without a server, or one whose server must not be stopped. Unset durations have defaults that
// leave room for a slow machine: they are bounds, not measurements.
type Config struct {
	// Prepare is called before each process of a member starts; it may be nil. It must clean up
	// with the test. Checks call Prepare and Killed concurrently, each for its own members.
	Prepare func(t testing.TB, m Member)
	// Killed is called after the process of a member was killed; it may be nil. It is for providers
	// that rely on another component to notice, such as the kubelet.
	Killed func(t testing.TB, m Member)
	// Server is the provider's server. If it is nil, P9, P14 and P17 are skipped with a message.
	Server *Server
	// Listens means that the provider listens on Spare[Index]: P10 then checks that port too.
	Listens bool
	// OneByOne starts members one after the other instead of concurrently. It hides races between
	// starts, for providers that are known to have them.
	OneByOne bool
	// ListedWithin bounds the time from a member's start until all members list it. Default 1m.
	ListedWithin time.Duration
	// DroppedWithin bounds the time until a killed member is dropped. Default 1m.
	DroppedWithin time.Duration
	// LeftWithin bounds the time until a member that was shut down is dropped and everything its
	// incarnation started has stopped. Default 1m.
	LeftWithin time.Duration
	// KeptFor is how long members must keep each other after the server has returned (P9), a pause
	// has ended (P16) or connections have fallen silent (P17), and bounds the time until they list
	// a member that is started after that silence. Default 15s.
	KeptFor time.Duration
	// Pause is how long all members are stopped for P16. It must be longer than the provider needs
	// to drop a member. Default 8s.
	Pause time.Duration
	// Except lists rules that are skipped, each with a reason that the test prints.
	Except map[string]string
	// Leaks is what each incarnation may leave behind. The default is nothing.
	Leaks Leaks
}

// Leaks are counts per incarnation. Goroutines of Proto.Actor that stop by themselves within a
// minute are not counted.
type Leaks struct{ Goroutines, Files int }

// Server is the server of a provider: a single one, or a majority of several.
type Server struct {
	// Name must appear in the error of a start without the server. By default any error is
	// accepted.
	Name string
	// Stop returns when the server no longer answers, Start when it answers again with all its
	// data.
	Stop, Start func(t testing.TB)
	// Silence returns a function that drops all that is sent on the connections which were present
	// when Silence was called, and which stay open; new ones work. If it is nil, P17 is skipped
	// with a message.
	Silence func(t testing.TB) (now func())
	// Outage is the minimum time for which P9 keeps the server down. Default 10s.
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
