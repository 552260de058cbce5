package testkit

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
)

// Member is one process of a cluster, from its start to its end. After a restart there is another Member at
// the same index and address.
type Member struct {
	Index   int
	ID      string
	Address string
	Roles   []string
	System  *actor.ActorSystem
	// Session is the member's own, on the lease store of the cluster by way of Store and on the clock of the
	// member. An ordered stop closes it.
	Session *coordination.Session
	Store   *Store

	c       *Cluster
	sim     *simnet.Member
	clock   *Clock
	disk    *Disk
	gone    bool
	frozen  bool
	members *membership.Service
}

// begin makes the member of a process that has its system, and nobody lists it yet.
func (c *Cluster) begin(sim *simnet.Member) {
	i := indexOf(sim.Address)
	if c.set.roles != nil {
		sim.Roles = c.set.roles(i)
	}
	clock := c.clock(i)
	clock.boot()
	timer.Attach(sim.System, timer.Host{Clock: clock})
	m := &Member{
		Index: i, ID: sim.ID, Address: sim.Address, Roles: sim.Roles, System: sim.System, c: c, sim: sim,
		clock: clock, disk: c.disk(i), Store: &Store{to: c.Leases}, members: membership.Attach(sim.System),
	}
	m.Store.note = func(format string, args ...any) { c.note("lease store of %v: "+format, append([]any{m}, args...)...) }
	cfg := c.set.leases
	cfg.Owner, cfg.Logger, cfg.Clock = m.ID, m.System.Logger(), clock
	session, err := coordination.Open(m.Store, cfg)
	if err == nil {
		_, err = lifecycle.OnStop(m.System, lifecycle.Leases, "session", session.Close)
	}
	if err != nil {
		c.t.Fatalf("member %d: %v", i, err)
	}
	m.Session = session
	if i == len(c.members) {
		c.members = append(c.members, m)
	} else {
		c.members[i] = m
	}
	c.all = append(c.all, m)
	for _, f := range c.each {
		f(m)
	}
}

// enter lists a new member everywhere, in place of a former one at its address.
func (c *Cluster) enter(m *Member) {
	live := c.sim.Live()
	c.sim.List([]*simnet.Member{m.sim}, live)
	c.sim.Replace(live, m.sim)
}

// clock returns that of the i-th machine.
func (c *Cluster) clock(i int) *Clock {
	for len(c.clocks) <= i {
		k := newClock(c, len(c.clocks))
		c.clocks = append(c.clocks, k)
		if c.set.clocks != nil {
			c.set.clocks(k.index, k)
		}
	}
	return c.clocks[i]
}

// disk returns that of the i-th machine.
func (c *Cluster) disk(i int) *Disk {
	for len(c.disks) <= i {
		d, n := NewDisk(c.seed), len(c.disks)
		d.note = func(format string, args ...any) { c.note("disk of machine %d: "+format, append([]any{n}, args...)...) }
		c.disks = append(c.disks, d)
	}
	return c.disks[i]
}

// Disk returns the disk of the member's machine. A restart finds on it what was synced; Leave and Crash end
// the stores that are open on it.
func (m *Member) Disk() *Disk { return m.disk }

// Clock returns the clock of the member's machine, for what the test builds on it and for SetRate and Jump.
func (m *Member) Clock() *Clock { return m.clock }

// String returns the id.
func (m *Member) String() string { return m.ID }

// Gone tells whether the member has left or crashed.
func (m *Member) Gone() bool { return m.gone }

// Ready waits for what node.Start waits for: the member is listed, its age is known, and its components
// can be used. It returns the error of ctx, or of a component.
func (m *Member) Ready(ctx context.Context) error {
	if err := m.members.Ready(ctx); err != nil {
		return err
	}
	return lifecycle.Of(m.System).Start(ctx)
}

// Leave stops the member in order, as node.Shutdown does: components in their phases, the session, then
// membership. Then its actors stop, and the others list it no more. The error is what node.Shutdown would
// return.
func (m *Member) Leave(ctx context.Context) error {
	m.c.note("leave %v", m)
	err := m.shutdown(ctx)
	m.gone = true
	m.c.sim.Leave(m.sim)
	m.kill()
	m.disk.Crash()
	return err
}

func (m *Member) shutdown(ctx context.Context) error {
	return lifecycle.Of(m.System).Stop(ctx, func(ctx context.Context) error {
		m.members.Stop()
		select {
		case <-m.members.Stopped():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// Crash ends the member without a word: from now on nothing of it reaches another member or the lease
// store. Its actors are stopped, for lack of a way to make an actor vanish: they handle Stopping and
// Stopped, but nobody hears of it. Goroutines of the test's own run on. The others list it until Expel or
// Restart.
func (m *Member) Crash() {
	if m.gone {
		return
	}
	m.c.note("crash %v", m)
	m.gone = true
	m.Store.die()
	m.disk.Crash()
	m.disk.thaw()
	m.clock.suspend(false)
	m.c.sim.Crash(m.sim)
	m.kill()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	m.c.ending.Go(func() { _ = m.shutdown(ended) })
}

// kill stops all actors.
func (m *Member) kill() {
	m.members.Stop()
	pids := map[string]*actor.ActorProcess{}
	for _, bucket := range m.System.ProcessRegistry.LocalPIDs.LocalPIDs {
		bucket.IterCb(func(id string, v any) {
			if p, ok := v.(*actor.ActorProcess); ok {
				pids[id] = p
			}
		})
	}
	for _, id := range sortedKeys(pids) {
		pids[id].Stop(actor.NewPID(m.Address, id))
	}
}

// Restart starts a new process at the address, after a crash if the member still runs. It has a new id and an
// empty memory. The others list it in place of the old one.
func (m *Member) Restart() *Member {
	m.c.t.Helper()
	if m.c.members[m.Index] != m {
		m.c.t.Fatalf("member %v has been replaced by %v", m, m.c.members[m.Index])
	}
	m.Crash()
	m.c.sim.Start(m.Address)
	next := m.c.members[m.Index]
	m.c.note("restart %v as %v", m, next)
	m.c.enter(next)
	return next
}

// Freeze holds all messages and calls of the lease store to and from the member, and what its provider
// would tell it, until Thaw, as if the network and the process stood still. Its goroutines and timers
// run on all the same: no process can be stopped from inside. So it notices the time that passes, which
// a process that was paused would only afterwards. See Suspend.
func (m *Member) Freeze() {
	m.c.note("freeze %v", m)
	m.frozen = true
	m.Store.freeze()
	m.disk.freeze()
	m.c.sim.Freeze(m.sim)
}

// Suspend is Freeze with the clock standing still, too, until Thaw: the stop that no clock of the machine can
// see, as of a virtual machine that is paused or moved. What goes by Member.Clock neither runs nor knows.
// Actors still handle what the test itself sends them, as if in the last moment before.
func (m *Member) Suspend() {
	m.c.note("suspend %v", m)
	m.frozen = true
	m.clock.suspend(true)
	m.Store.freeze()
	m.disk.freeze()
	m.c.sim.Freeze(m.sim)
}

// Thaw ends Freeze and Suspend. What was held is told, sent and delivered, in the order in which it came.
func (m *Member) Thaw() {
	m.c.note("thaw %v", m)
	m.frozen = false
	m.clock.suspend(false)
	m.c.sim.Thaw(m.sim)
	m.Store.thaw()
	m.disk.thaw()
}

// Expel lets all others list the member no more, as providers do with one that is silent. If it lives, it
// still lists them, and reaches them.
func (m *Member) Expel() {
	m.c.note("expel %v", m)
	m.c.sim.Expel(m.sim)
}

// Lists lets the provider of this member alone list others: views of members may disagree.
func (m *Member) Lists(others ...*Member) {
	m.c.note("%v lists %v", m, others)
	m.c.sim.List([]*simnet.Member{m.sim}, sims(others))
}

// Drops lets the provider of this member alone list others no more.
func (m *Member) Drops(others ...*Member) {
	m.c.note("%v drops %v", m, others)
	m.c.sim.Unlist([]*simnet.Member{m.sim}, sims(others))
}

// Sees tells whether the components of this member are told of the other one.
func (m *Member) Sees(other *Member) bool {
	v := m.members.View()
	if v == nil {
		return false
	}
	_, ok := v.Find(other.ID)
	return ok
}

func sims(members []*Member) (out []*simnet.Member) {
	for _, m := range members {
		out = append(out, m.sim)
	}
	return out
}
