package three

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// Member is passed to an example, which attaches its components before the member starts.
type Member struct {
	Index   int
	System  *actor.ActorSystem
	DD      *distributeddata.Replicator
	Session *coordination.Session

	sim *simnet.Member
}

// Grains makes the member run virtual actors, which the lookup finds. On the virtual network, Get,
// Request and RequestFuture of the result work, and nothing else.
func (m Member) Grains(lookup cluster.IdentityLookup, kinds ...*cluster.Kind) *cluster.Cluster {
	return m.sim.Grains(lookup, kinds...)
}

// TTL is the TTL of the members' leases.
const TTL = 5 * time.Second

// RunWithLeases runs an example whose members also have sessions of one lease store. It stops the
// members when the example returns. It calls setup for each member before the member starts. The
// caller closes the store.
func RunWithLeases(ctx context.Context, out io.Writer, leases Leases, setup func(Member) error,
	example Example) (err error) {
	c := &Cluster{}
	i := 0
	c.sim = simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: time.Millisecond}, Members: Members,
		Setup: func(m *simnet.Member) {
			c.store[i] = &reach{Leases: leases}
			err = errors.Join(err, c.attach(i, m, setup))
			i++
		},
	})
	defer c.sim.Close()
	defer func() { err = errors.Join(err, c.stop(ctx)) }()
	if err != nil {
		return err
	}
	if err := c.each(func(i int) error {
		if err := lifecycle.Of(c.System[i]).Start(ctx); err != nil {
			return err
		}
		return c.DD[i].Ready(ctx)
	}); err != nil {
		return err
	}
	return example(ctx, out, c)
}

func (c *Cluster) attach(i int, m *simnet.Member, setup func(Member) error) (err error) {
	c.System[i] = m.System
	if c.DD[i], err = distributeddata.New(m.System, distributeddata.Config{
		MinMembers: Members}); err != nil {
		return err
	}
	if c.session[i], err = coordination.Open(c.store[i].store(), coordination.Config{
		Owner: m.ID, TTL: TTL, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	return setup(Member{i, m.System, c.DD[i], c.session[i], m})
}

// each calls do for all members concurrently.
func (c *Cluster) each(do func(i int) error) error {
	done := make(chan error, Members)
	for i := range Members {
		go func() { done <- do(i) }()
	}
	var errs []error
	for range Members {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

// stop stops the members. After a Kill or a Leave it ignores their errors: it stops the others all
// at once, and so they may have no member to give their shards to.
func (c *Cluster) stop(ctx context.Context) error {
	within := 20 * time.Second
	if c.fewer {
		within = time.Second
	}
	err := c.each(func(i int) error { return c.stopMember(ctx, i, within) })
	if c.fewer {
		return nil
	}
	return err
}

// stopMember stops a member in order. A second call returns the result of the first.
func (c *Cluster) stopMember(ctx context.Context, i int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return lifecycle.Of(c.System[i]).Stop(ctx, func(ctx context.Context) error {
		if c.session[i] == nil {
			return nil
		}
		return c.session[i].Close(ctx)
	})
}

// Leave stops a member in order, as node.Shutdown does: the member gives its shards to the others,
// and they drop it when it has stopped.
func (c *Cluster) Leave(ctx context.Context, i int) error {
	c.fewer = true
	err := c.stopMember(ctx, i, 20*time.Second)
	c.sim.Leave(c.sim.Member(i))
	return err
}

// Kill stops a member abruptly: other members and the lease store receive nothing more from it. Its
// goroutines continue, like those of a process that is cut off.
func (c *Cluster) Kill(i int) {
	m := c.sim.Member(i)
	c.fewer = true
	c.sim.Crash(m)
	c.store[i].away.Store(true)
	c.sim.Unlist(c.sim.Live(), []*simnet.Member{m})
}

// Isolate cuts a member off from the other members and from the lease store. The providers of both
// sides drop the other side.
func (c *Cluster) Isolate(i int) {
	c.fewer = true
	c.Cut(i)
	c.store[i].away.Store(true)
	one, others := []*simnet.Member{c.sim.Member(i)}, []*simnet.Member{}
	for j := range Members {
		if j != i {
			others = append(others, c.sim.Member(j))
		}
	}
	c.sim.Unlist(one, others)
	c.sim.Unlist(others, one)
}

// Index returns the number of the member with an address.
func Index(address string) int {
	i := -1
	_, _ = fmt.Sscanf(address, "node-%d:", &i)
	return i
}
