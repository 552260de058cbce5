// Package three runs the examples of replicated data on three members of one cluster, in one
// process, on an in-memory network that can be cut. A real member starts as shown in package node;
// everything else is the same.
package three

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// Members is the number of members.
const Members = 3

// Cluster holds the three members.
type Cluster struct {
	DD     [Members]*distributeddata.Replicator
	System [Members]*actor.ActorSystem

	sim     *simnet.Cluster
	store   [Members]*reach // with leases only
	session [Members]*coordination.Session
	fewer   bool // a member was killed or has left
}

// Example is the function of an example.
type Example func(ctx context.Context, out io.Writer, c *Cluster) error

// Main is the main function of an example.
func Main(example Example) {
	if err := run(context.Background(), os.Stdout, example); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, example Example) error {
	return Run(ctx, out, func(int) distributeddata.Config {
		return distributeddata.Config{}
	}, example)
}

// Run runs an example on members that start together, each with its configuration, and stops them
// when the example returns. Run sets MinMembers.
func Run(ctx context.Context, out io.Writer, config func(i int) distributeddata.Config,
	example Example) (err error) {
	c := &Cluster{}
	i := 0
	c.sim = simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: time.Millisecond}, Members: Members,
		Setup: func(m *simnet.Member) {
			cfg := config(i)
			cfg.MinMembers = Members
			dd, bad := distributeddata.New(m.System, cfg)
			err = errors.Join(err, bad)
			c.DD[i], c.System[i] = dd, m.System
			i++
		},
	})
	defer c.sim.Close()
	if err != nil {
		return err
	}
	for _, dd := range c.DD {
		defer func() { err = errors.Join(err, dd.Close(ctx)) }()
		if err := dd.Ready(ctx); err != nil {
			return err
		}
	}
	return example(ctx, out, c)
}

// Cut cuts a member off from the network.
func (c *Cluster) Cut(i int) {
	var others []string
	for j := range Members {
		if j != i {
			others = append(others, c.sim.Member(j).Address)
		}
	}
	c.sim.Net.Partition([]string{c.sim.Member(i).Address}, others)
}

// Heal ends every cut.
func (c *Cluster) Heal() { c.sim.Net.Heal() }

// Until waits until done returns true, for changes that are still being replicated.
func Until(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w", context.Cause(ctx))
		}
	}
	return nil
}
