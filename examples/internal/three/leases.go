package three

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// Member is what an example attaches its components to, before the member starts.
type Member struct {
	Index   int
	System  *actor.ActorSystem
	DD      *distributeddata.Replicator
	Session *coordination.Session
}

// TTL of the leases of members.
const TTL = 5 * time.Second

// RunWithLeases runs an example whose members have sessions of one lease store, too, until it returns, and then stops the
// members. setup is called for each member before it starts. The store is the caller's to close.
func RunWithLeases(ctx context.Context, out io.Writer, leases Leases, setup func(Member) error, example Example) (err error) {
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
	if err := c.each(func(i int) error { return lifecycle.Of(c.System[i]).Start(ctx) }); err != nil {
		return err
	}
	return example(ctx, out, c)
}

func (c *Cluster) attach(i int, m *simnet.Member, setup func(Member) error) (err error) {
	c.System[i] = m.System
	if c.DD[i], err = distributeddata.New(m.System, distributeddata.Config{MinMembers: Members}); err != nil {
		return err
	}
	if c.session[i], err = coordination.Open(c.store[i].store(), coordination.Config{Owner: m.ID, TTL: TTL, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	return setup(Member{i, m.System, c.DD[i], c.session[i]})
}

// each does something at all members at the same time.
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

// stop stops the members. After a Kill, what they then miss is no error.
func (c *Cluster) stop(ctx context.Context) error {
	err := c.each(func(i int) error {
		within := 20 * time.Second
		if c.killed {
			within = time.Second
		}
		in, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return lifecycle.Of(c.System[i]).Stop(in, func(ctx context.Context) error {
			if c.session[i] == nil {
				return nil
			}
			return c.session[i].Close(ctx)
		})
	})
	if c.killed {
		return nil
	}
	return err
}

// Kill ends a member without a word: nothing comes from it any more, at other members or at the lease store. Its goroutines
// go on, like those of a process that is only cut off.
func (c *Cluster) Kill(i int) {
	m := c.sim.Member(i)
	c.killed = true
	c.sim.Crash(m)
	c.store[i].away.Store(true)
	c.sim.Unlist(c.sim.Live(), []*simnet.Member{m})
}
