package sharding

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding/internal/core"
)

// coordinator is the instance of the singleton that assigns shards: an actor around an Allocation.
type coordinator struct {
	binding *binding
	shell   *shell.Shell[core.Event, core.Effect]
	view    *membership.View
	fresh   []core.Entry // to be written to the replicated table
}

func (l *binding) newCoordinator(t coordination.Tenure) actor.Actor {
	c := &coordinator{binding: l}
	// One that panicked is made again under its tenure.
	l.allocation = core.NewAllocation(l.cfg.core(), uint64(t.Token()), l.allocation)
	c.shell = shell.New(shell.Config[core.Event, core.Effect]{
		Name: l.component(), Core: l.allocation, Wake: core.Wake{}, CarryOut: c.carryOut,
		Settled: c.settled, Panics: &l.counts.panics,
	})
	return c
}

// Receive implements actor.Actor.
func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.shell.Start(ctx)
		c.binding.coordinator.Store(ctx.Self())
		c.shell.Step(ctx, core.Known{Entries: c.binding.readTable()})
		if c.binding.cfg.External {
			c.shell.Step(ctx, c.binding.readExternal())
			c.binding.subscribeExternal(ctx.Self())
		}
		c.binding.members.Subscribe(ctx.Self())
	case *actor.Stopping, *actor.Restarting:
		c.shell.Stop()
		c.binding.members.Unsubscribe(ctx.Self())
		c.binding.coordinator.CompareAndSwap(ctx.Self(), nil)
	case *membership.View:
		c.onView(ctx, m)
	case *report:
		c.shell.Step(ctx, core.Received{From: m.from, Message: m.report})
	case *chosen:
		c.shell.Step(ctx, core.Overrides(*m))
	case *timer.Fired:
		c.shell.Fired(ctx, m)
	}
}

// onView passes the members that may host to the core.
func (c *coordinator) onView(ctx actor.Context, v *membership.View) {
	first := c.view == nil
	c.view = v
	out := core.View{Self: member(v.Self), Removed: v.Removed}
	var newest string
	for _, m := range v.Members {
		if m.Incarnation == 0 || !m.HasRole(c.binding.cfg.Role) {
			continue
		}
		out.Members = append(out.Members, member(m))
		switch d := membership.CompareVersions(m.AppVersion, newest); {
		case d > 0:
			newest, out.Newest = m.AppVersion, []core.Member{member(m)}
		case d == 0:
			out.Newest = append(out.Newest, member(m))
		}
	}
	if len(out.Newest) == len(out.Members) {
		out.Newest = nil
	}
	c.shell.Step(ctx, out)
	if first {
		for _, m := range c.binding.endedRegions() { // later ones are passed on as they come
			c.shell.Step(ctx, core.Received{From: m, Message: core.Farewell()})
		}
	}
}

func (c *coordinator) carryOut(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Tell:
		if e.To == member(c.view.Self) {
			contain.Send(ctx.ActorSystem(), c.binding.control, &heard{e.Message})
			return
		}
		manifest, m := encode(e.Message)
		c.binding.tell(c.view, e.To, manifest, m)
	case core.Consult:
		go c.binding.consult(ctx.Self(), e)
	case core.Assigned:
		c.fresh = append(c.fresh, e.Entry)
	}
}

func (c *coordinator) settled(actor.Context) {
	if len(c.fresh) > 0 {
		c.binding.writeTable(c.fresh)
		c.fresh = nil
	}
}
