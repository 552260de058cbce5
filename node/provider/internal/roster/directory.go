package roster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/cluster"
)

// Member is an entry of a directory.
type Member struct {
	ID    string
	Host  string
	Port  int
	Kinds []string
	// Order tells entries at one address apart: the largest is the latest. Equal ones are ordered by ID.
	Order int64
}

func (m Member) address() string { return fmt.Sprintf("%s:%d", m.Host, m.Port) }

// Self is the member that a provider serves.
type Self struct {
	Member          // Its ID is that of the actor system, which each life has anew.
	Cluster  string // name
	Listener string // host that remoting listens on, as configured
	Log      *slog.Logger
}

// Directory is where members find each other. Its methods are called one at a time.
type Directory interface {
	// Where names the directory in messages: "etcd at 10.0.0.5:2379".
	Where() string
	// Serve lists self, and calls report with all entries of its cluster, self included, at first and
	// after each change. It returns nil when ctx has ended, and an error when its session with the
	// directory is lost; it is then called again.
	Serve(ctx context.Context, self Self, report func([]Member)) error
	// Leave takes self off. It may be called although Serve never succeeded.
	Leave(ctx context.Context, self Self) error
	// Close releases everything.
	Close() error
}

// selfOf reads what a started remoting and its cluster say.
func selfOf(c *cluster.Cluster) (Self, error) {
	host, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return Self{}, fmt.Errorf("address of this member: %w", err)
	}
	if port <= 0 {
		return Self{}, fmt.Errorf("remoting has not been started: address is %q", c.ActorSystem.Address())
	}
	kinds := c.GetClusterKinds()
	slices.Sort(kinds)
	return Self{
		Member:   Member{ID: c.ActorSystem.ID, Host: host, Port: port, Kinds: kinds},
		Cluster:  c.Config.Name,
		Listener: c.Config.RemoteConfig.Host,
		Log:      c.ActorSystem.Logger(),
	}, nil
}
