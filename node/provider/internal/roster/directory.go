package roster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
)

// Member is an entry of a directory.
type Member struct {
	ID    string
	Host  string
	Port  int
	Kinds []string
	// Order distinguishes entries at one address: the one with the largest Order is the latest.
	// Equal ones are ordered by ID.
	Order int64
}

func (m Member) address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// bracketed returns a host as Proto.Actor needs it, which appends a colon and the port.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Self is the member that a provider serves.
type Self struct {
	Member          // Its ID is that of the actor system, new in each incarnation.
	Cluster  string // name of the cluster
	Listener string // host that remoting listens on, as configured
	System   *actor.ActorSystem
	Log      *slog.Logger
}

// Directory is the service through which members find each other. Its methods are not called
// concurrently.
type Directory interface {
	// Where names the directory in messages: "etcd at 10.0.0.5:2379".
	Where() string
	// Serve lists self and calls report with all entries of its cluster, including self: once at
	// the start and again after each change. It returns nil when ctx has ended, and an error when
	// its session with the directory is lost; it is then called again.
	Serve(ctx context.Context, self Self, report func([]Member)) error
	// Leave removes self from the directory. It may be called even if Serve never succeeded.
	Leave(ctx context.Context, self Self) error
	// Close releases everything.
	Close() error
}

// selfOf returns the Self of a cluster whose remoting has started.
func selfOf(c *cluster.Cluster) (Self, error) {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return Self{}, fmt.Errorf("address of this member: %w", err)
	}
	if port <= 0 {
		return Self{}, fmt.Errorf("remoting has not been started: address is %q",
			c.ActorSystem.Address())
	}
	kinds := c.GetClusterKinds()
	slices.Sort(kinds)
	return Self{
		Member:   Member{ID: c.ActorSystem.ID, Host: host, Port: port, Kinds: kinds},
		Cluster:  c.Config.Name,
		Listener: strings.Trim(c.Config.RemoteConfig.Host, "[]"),
		System:   c.ActorSystem,
		Log:      c.ActorSystem.Logger(),
	}, nil
}
